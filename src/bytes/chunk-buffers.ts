/** Buffers kept for the next walk at most: those of one walk. */
const MAX_SPARE_BUFFERS = 8;

const spare: Buffer[] = [];

/**
 * Takes a buffer of at least `sizeBytes` that a walk is done with, or a fresh one. Fresh ones are let go of late: the
 * garbage collector sees little of what they hold, and the buffers of three and four walks were in memory at once.
 */
export function takeChunkBuffer(sizeBytes: number): Buffer {
  const index = spare.findIndex((buffer) => buffer.length === sizeBytes);
  const [taken] = index < 0 ? [] : spare.splice(index, 1);
  return taken ?? Buffer.allocUnsafeSlow(sizeBytes);
}

/** Gives back a buffer that nothing reads or writes any more. */
export function giveBackChunkBuffer(buffer: Buffer): void {
  spare.push(buffer);
  if (spare.length > MAX_SPARE_BUFFERS) spare.shift();
}
