import { deflateSync } from 'node:zlib';
import { topBoxesOf } from '../publications/signed-publication.ts';
import { box, u32 } from './movie-bytes.ts';

/** Returns a movie with its tables compressed as QuickTime does (QuickTime File Format, "Compressed Movie Resources"). */
export function withCompressedTables(movie: Uint8Array): Buffer {
  const boxes = topBoxesOf(movie).map(({ type, bytes }) => {
    if (type !== 'moov') return bytes;
    const data = box('cmvd', u32(bytes.length), deflateSync(bytes));
    return box('moov', box('cmov', box('dcom', Buffer.from('zlib')), data));
  });
  return Buffer.concat(boxes);
}
