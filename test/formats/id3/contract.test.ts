import { randomBytes } from 'node:crypto';
import { id3 } from '#formats/id3/id3.ts';
import { formatHandlerContract } from '../format-handler-contract.ts';
import { frame, mpegFrames, picture, tag, text } from './tag-bytes.ts';

const STREAM_INFO = '00000022 1000 1000 00000e 00000e 0ac440f0 0000ac44 00000000000000000000000000000000';
const FLAC = Buffer.concat([Buffer.from('fLaC'), Buffer.from(STREAM_INFO.replaceAll(' ', ''), 'hex')]);
const SMALL_FLAC = Buffer.concat([FLAC, randomBytes(900)]);
const LARGE_FLAC = Buffer.concat([FLAC, randomBytes(2_000_000)]);
const TITLE = frame(4, 'TIT2', text('song'));

formatHandlerContract('ID3', id3, {
  files: {
    'an MP3 without a tag': () => mpegFrames(12),
    'an MP3 behind a tag with a title and room': () =>
      Buffer.concat([tag(4, Buffer.concat([TITLE, Buffer.alloc(50)])), mpegFrames(12)]),
    'an MP3 behind an old tag with a picture': () =>
      Buffer.concat([tag(3, frame(3, 'APIC', picture(500))), mpegFrames(12)]),
    'a FLAC': () => SMALL_FLAC,
    'a FLAC behind a tag': () => Buffer.concat([tag(4, TITLE), SMALL_FLAC]),
  },
  large: () => LARGE_FLAC,
  mediaOf: behindTags,
});

/** Returns the bytes behind the tags at the start. */
function behindTags(bytes: Buffer): Buffer {
  let rest = bytes;
  while (rest.toString('latin1', 0, 3) === 'ID3') {
    const bodyBytes = rest.subarray(6, 10).reduce((size, byte) => size * 128 + byte, 0);
    rest = rest.subarray(10 + bodyBytes);
  }
  return rest;
}
