import { randomBytes } from 'node:crypto';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { mediaFolder } from '../../support/judges/file-judges.ts';
import { movie, samplesOf } from '../../support/media/media-files.ts';
import {
  assemble,
  box,
  co64,
  FTYP,
  fullBox,
  moovWith,
  SELF_CONTAINED,
  stco,
  trak,
  u16,
  u32,
} from '../../support/media/movie-bytes.ts';
import { formatHandlerContract } from '../format-handler-contract.ts';

const folder = mediaFolder();
const made = new Map<string, Buffer>();

function once(name: string, make: () => Buffer): () => Buffer {
  return () => {
    const bytes = made.get(name) ?? make();
    made.set(name, bytes);
    return bytes;
  };
}

formatHandlerContract('ISO BMFF', isobmff, {
  files: {
    'an MP4 with its tables behind the media': once('last', () => movie(folder, 'last.mp4')),
    'an MP4 with its tables in front': once('first', () => movie(folder, 'first.mp4', '-movflags', 'faststart')),
    'a MOV': once('mov', () => movie(folder, 'a.mov')),
    'a fragmented MP4 with absolute offsets and an index': once('fragmented', () =>
      movie(folder, 'fragmented.mp4', '-movflags', 'frag_keyframe+empty_moov'),
    ),
  },
  large: () => Buffer.concat([FTYP, moovWith(stco(100)), box('mdat', randomBytes(4_000_000))]),
  mediaOf: samplesOf,
});

formatHandlerContract('ISO BMFF, by hand', isobmff, {
  files: {
    'a file with every kind of table': () =>
      assemble(
        FTYP,
        ([, , , at = 0]) => {
          const iloc = fullBox('iloc', 0x01000000, u16(0x4440, 1), u16(1, 0, 0), u32(0), u16(1), u32(at + 16, 8));
          const tables = [stco(at + 8, at + 16), fullBox('saio', 0, u32(1, at + 8))];
          return box(
            'moov',
            trak({ tables }),
            trak({ tables: [co64(at + 24)] }),
            fullBox('meta', 0, box('dinf', fullBox('dref', 0, u32(1), SELF_CONTAINED)), iloc),
          );
        },
        box('free', Buffer.alloc(50)),
        box('mdat', Buffer.from('chunk001chunk002chunk003')),
      ),
  },
  large: () => Buffer.concat([FTYP, moovWith(stco(100)), box('free'), box('mdat', randomBytes(4_000_000))]),
  mediaOf: (bytes) => bytes.includes('chunk001chunk002chunk003'),
});
