/** `reference_type` and `referenced_size` share 32 bits, size in the lower 31; every reference takes 12 bytes. */
const REFERENCE_SIZE_BYTES = 12;

/** Fields of a segment index (`sidx`, ISO/IEC 14496-12 §8.16.3). */
export interface SegmentIndexFields {
  /** Ticks per second. */
  readonly timescale: number;
  /** Presentation time of the first subsegment, in ticks. */
  readonly startTicks: bigint;
  /** Distance from the end of the box to the first subsegment. */
  readonly firstOffset: number;
  readonly references: readonly { isIndex: boolean; sizeBytes: number; durationTicks: number }[];
}

/** Parses the content of a `sidx` box, behind its header; undefined where it is cut short. */
export function parseSegmentIndex(content: Buffer): SegmentIndexFields | undefined {
  const isWide = content[0] !== 0;
  const countAt = isWide ? 30 : 22;
  if (content.length < countAt + 2) return undefined;
  const count = content.readUInt16BE(countAt);
  if (content.length < countAt + 2 + count * REFERENCE_SIZE_BYTES) return undefined;
  const references = Array.from({ length: count }, (_, index) => {
    const at = countAt + 2 + index * REFERENCE_SIZE_BYTES;
    const word = content.readUInt32BE(at);
    return { isIndex: word >>> 31 === 1, sizeBytes: word & 0x7fffffff, durationTicks: content.readUInt32BE(at + 4) };
  });
  return {
    timescale: content.readUInt32BE(8),
    startTicks: isWide ? content.readBigUInt64BE(12) : BigInt(content.readUInt32BE(12)),
    firstOffset: isWide ? Number(content.readBigUInt64BE(20)) : content.readUInt32BE(16),
    references,
  };
}
