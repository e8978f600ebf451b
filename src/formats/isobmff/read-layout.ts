import type { ByteSource } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { ReadWindow } from '../read-window.ts';
import { findManifest, findXmp } from './embedded-stores.ts';
import { type FileBox, isC2paBox, walkFile } from './file-boxes.ts';
import { majorBrandOf, readFileType } from './file-type.ts';
import { addFragmentOffsets } from './fragment-offsets.ts';
import type { IsobmffLayout } from './layout.ts';
import { kindOf } from './media-type.ts';
import { OffsetCollector } from './offset-collector.ts';
import { readTables } from './read-tables.ts';
import { readWholeBox } from './whole-box.ts';

/** One read of headers fetches so many bytes: of small fragments many, and of large ones the `moof` box. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** Bound of a `moof` box. Fragments have some ten kilobytes of tables. */
const LARGEST_FRAGMENT_TABLES_BYTES = 16 * 1024 * 1024;

/** Reads what is needed to put a manifest into a file: its boxes, its kinds of tracks, every absolute offset. */
export async function readLayout(source: ByteSource, signal: AbortSignal): Promise<IsobmffLayout> {
  const { name, sizeBytes } = source;
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const offsets = new OffsetCollector();
  const { boxes, tail } = await walkFile(source, window, (box) =>
    box.type === 'moof' ? readFragment(name, window, box, offsets) : undefined,
  );
  requireMovie(name, boxes);
  const trackKinds = await readTables(name, window, boxes, offsets);
  const fileType = await readFileType(name, window, boxes);
  return {
    name,
    sizeBytes,
    boxes,
    tail,
    fileType,
    rigid: rigidPartOf(boxes),
    offsets,
    ...kindOf(majorBrandOf(name, fileType), trackKinds),
    hasVideo: trackKinds.hasVideo,
    manifest: await findManifest(window, boxes.filter(isC2paBox)),
    xmp: findXmp(boxes),
    warnings: warningsOf(name, boxes, trackKinds.externalTrackCount),
  };
}

function warningsOf(name: string, boxes: readonly FileBox[], trackCount: number): Warning[] {
  const corrected = boxes.flatMap(({ offset, sizeBytes, overstatedBytes: statedBytes }) =>
    statedBytes === undefined ? [] : [warning('MEDIA_SIZE_CORRECTED', { name, offset, statedBytes, sizeBytes })],
  );
  return trackCount === 0 ? corrected : [...corrected, warning('MEDIA_IN_OTHER_FILES', { name, trackCount })];
}

async function readFragment(
  name: string,
  window: ReadWindow,
  header: FileBox,
  offsets: OffsetCollector,
): Promise<void> {
  const moof = await readWholeBox(name, window, header, LARGEST_FRAGMENT_TABLES_BYTES);
  addFragmentOffsets(moof, offsets);
}

function requireMovie(name: string, boxes: readonly FileBox[]): void {
  const types = new Set(boxes.map(({ type }) => type));
  if (!types.has('moov')) throw new AppError('BMFF_MOVIE_MISSING', { name, isFragment: types.has('moof') });
  if (!types.has('mdat') && !types.has('moof')) throw new AppError('BMFF_MEDIA_MISSING', { name });
}

/** Fragments count from their `moof` box to their media, and segment indexes from their own end. */
function rigidPartOf(boxes: readonly FileBox[]): IsobmffLayout['rigid'] {
  const first = boxes.find(({ type }) => type === 'sidx' || type === 'moof');
  const last = boxes.findLast(({ type }) => type === 'moof' || type === 'mdat');
  if (first === undefined || last === undefined || last.offset < first.offset) return null;
  return { start: first.offset, end: last.offset };
}
