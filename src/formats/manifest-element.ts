/** Byte range of the source. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** Box, chunk or frame of C2PA, header included: all that a hash may leave out of a file for its manifest. */
export interface ManifestElement extends ByteRange {
  /**
   * Bytes behind its header up to its end: a manifest store (JUMBF), then zeros. Null where readers find no store in it, or
   * not all of them the same one.
   */
  readonly content: ByteRange | null;
}

/** Returns the elements of a format with one manifest store in a file. Of several stores, readers take different ones. */
export function onlyReadableAlone(elements: readonly ManifestElement[]): readonly ManifestElement[] {
  return elements.length > 1 ? elements.map((element) => ({ ...element, content: null })) : elements;
}
