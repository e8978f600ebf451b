import { AppError } from '#errors/app-error.ts';
import type { ReadWindow } from '../read-window.ts';
import type { Box } from './box.ts';
import { addTrackOffsets } from './chunk-offsets.ts';
import type { FileBox } from './file-boxes.ts';
import { addRandomAccessOffsets } from './fragment-offsets.ts';
import { addItemOffsets } from './item-offsets.ts';
import type { OffsetCollector } from './offset-collector.ts';
import { readNesting } from './read-nesting.ts';
import { parseTrack, type Track, type TrackKinds, trackKindsOf } from './tracks.ts';
import { readWholeBox } from './whole-box.ts';

/** Bound of all boxes with tables together, each read into memory as a whole. A day of video has tens of megabytes. */
const LARGEST_TABLES_BYTES = 256 * 1024 * 1024;
const TYPES_WITH_TABLES = ['moov', 'mfra', 'meta'];

/** Reads the boxes that hold tables one by one, adds their absolute offsets, and says what tracks there are, and how many have their media in other files. */
export async function readTables(
  name: string,
  window: ReadWindow,
  boxes: readonly FileBox[],
  offsets: OffsetCollector,
): Promise<TrackKinds & { readonly externalTrackCount: number }> {
  const tracks: Track[] = [];
  const externalTracks: Box[] = [];
  let leftBytes = LARGEST_TABLES_BYTES;
  for (const header of boxes.filter(({ type }) => TYPES_WITH_TABLES.includes(type))) {
    const box = await readWholeBox(name, window, header, leftBytes);
    leftBytes -= header.sizeBytes;
    if (box.type === 'mfra') addRandomAccessOffsets(box, offsets);
    else if (box.type === 'meta') readMetadata(box, offsets);
    else readMovie(box, offsets, tracks, externalTracks);
  }
  return { ...trackKindsOf(tracks), externalTrackCount: externalTracks.length };
}

function readMetadata(meta: Box, offsets: OffsetCollector): void {
  readNesting(meta, offsets);
  addItemOffsets(meta, offsets);
}

function readMovie(moov: Box, offsets: OffsetCollector, tracks: Track[], externalTracks: Box[]): void {
  const { fileName: name, header } = moov;
  if (moov.descendant('cmov') !== undefined) {
    throw new AppError('BMFF_MOVIE_COMPRESSED', { name, offset: header.offset });
  }
  readNesting(moov, offsets);
  for (const meta of moov.descendants('meta')) addItemOffsets(meta, offsets);
  for (const trak of moov.descendants('trak')) {
    tracks.push(parseTrack(trak));
    if (!addTrackOffsets(trak, offsets)) externalTracks.push(trak);
    for (const meta of trak.descendants('meta')) addItemOffsets(meta, offsets);
  }
}
