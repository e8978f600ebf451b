/** A box inside a buffer: its content is `[contentStart, end)` of that buffer. */
export interface InnerBox {
  readonly type: string;
  readonly start: number;
  readonly contentStart: number;
  readonly end: number;
}

/** The boxes in `[start, end)` of a buffer, as far as they fit; what does not fit is reported by `onMisfit`. */
export function* innerBoxes(
  buffer: Buffer,
  start: number,
  end: number,
  onMisfit: (type: string, at: number) => never,
): Generator<InnerBox> {
  let at = start;
  while (at + 8 <= end) {
    const type = buffer.toString('latin1', at + 4, at + 8);
    const compact = buffer.readUInt32BE(at);
    const isWide = compact === 1 && at + 16 <= end;
    const sizeBytes = compact === 0 ? end - at : isWide ? Number(buffer.readBigUInt64BE(at + 8)) : compact;
    const contentStart = at + (isWide ? 16 : 8);
    if (contentStart > at + sizeBytes || at + sizeBytes > end) onMisfit(type, at);
    yield { type, start: at, contentStart, end: at + sizeBytes };
    at += sizeBytes;
  }
}
