import { AppError } from '#errors/app-error.ts';
import type { AudioStream } from '../id3/audio-stream.ts';

const MARKER = 'fLaC';
const BLOCK_HEADER_SIZE_BYTES = 4;
/** Size of STREAMINFO, the first metadata block of every FLAC stream (RFC 9639, §8.2). */
const STREAMINFO_SIZE_BYTES = 34;
/** The smallest block size that STREAMINFO may state, in samples. */
const MIN_BLOCK_SIZE = 16;

/** FLAC. Readers of C2PA find its manifest in an ID3v2 tag in front of the stream (C2PA 2.2, annex A.3). */
export const flacStream: AudioStream = {
  name: 'FLAC',
  mediaType: 'audio/flac',
  extensions: ['flac'],
  allowsSeveralTags: false,
  allowsFooter: false,
  matches: (head) => Buffer.from(head.subarray(0, MARKER.length)).toString('latin1') === MARKER,
  check(source, offset, head) {
    const problem = problemOfStreamInfo(head.subarray(MARKER.length));
    if (problem !== null) throw new AppError('FLAC_STREAMINFO_INVALID', { name: source.name, offset, problem });
  },
};

/** What is wrong with the metadata block behind the marker, or null. */
function problemOfStreamInfo(block: Buffer): string | null {
  if (block.length < BLOCK_HEADER_SIZE_BYTES + STREAMINFO_SIZE_BYTES) return 'the file ends inside it';
  const type = block.readUInt8(0) & 0x7f;
  const sizeBytes = block.readUIntBE(1, 3);
  if (type !== 0) return `the first block is of type ${type}`;
  if (sizeBytes !== STREAMINFO_SIZE_BYTES)
    return `it states a size of ${sizeBytes} instead of ${STREAMINFO_SIZE_BYTES}`;
  const minBlockSize = block.readUInt16BE(4);
  const maxBlockSize = block.readUInt16BE(6);
  const sampleRate = block.readUIntBE(14, 3) >> 4;
  if (minBlockSize < MIN_BLOCK_SIZE || maxBlockSize < minBlockSize) return 'its block sizes are out of range';
  return sampleRate === 0 ? 'its sample rate is 0' : null;
}
