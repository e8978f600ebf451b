/**
 * Gives back the memory of bytes that are not read any more, where nobody has another view of it. The garbage collector
 * lets go of it late and at great cost: without this, reading from S3 took almost twice the processor time, and 25 MB more.
 */
export function freeMemory({ buffer, length }: Uint8Array): void {
  const isOwn = buffer instanceof ArrayBuffer && length > 0 && length === buffer.byteLength;
  if (isOwn) buffer.transfer(0);
}
