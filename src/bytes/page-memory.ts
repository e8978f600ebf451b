/** What direct I/O asks of memory: it may begin at multiples of this, for no disk in use has larger blocks. */
export const PAGE_SIZE_BYTES = 4096;

/**
 * A buffer of zeros that begins on a page of memory. The engine maps the memory of resizable buffers itself, page by
 * page; other memory comes from the allocator, at any address. Nobody resizes it.
 */
export function allocatePages(sizeBytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(sizeBytes, { maxByteLength: sizeBytes }), 0, sizeBytes);
}

/** Whether bytes lie in memory that `allocatePages` gave. */
export function isInPages({ buffer }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.resizable;
}

/** Where on its page a place in memory or in a file lies, in bytes. */
export function offsetInPage(position: number): number {
  return position % PAGE_SIZE_BYTES;
}
