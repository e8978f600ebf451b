import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { BOX_HEADER_SIZE_BYTES } from '#formats/isobmff/box.ts';
import type { ByteRange, MediaPart } from '../publication.ts';
import type { AddressedSegments, AddressingElements, AddressingTask } from './addressing-task.ts';
import { readInitialization } from './mpd-segment-list.ts';
import { findSegmentIndex, readSegmentIndex } from './sidx.ts';

/**
 * The segments of a representation that is one file: SegmentBase, or nothing but a BaseURL. The file's segment index
 * says where they are (ISO/IEC 23009-1, §5.3.9.2).
 */
export async function addressByIndex(
  task: AddressingTask,
  elements: AddressingElements,
  signal: AbortSignal,
): Promise<AddressedSegments> {
  const path = task.index.tryLocate(task.base, '', task.values.placeOf(task.lineage[3]));
  if (path === undefined) return { addressing: 'none', init: null, segments: [] };
  if (!isMp4(task)) return { addressing: 'none', init: null, segments: [], path };
  const source = await task.folder.open(path, signal);
  try {
    const stated = statedIndexRange(task, elements);
    const found = stated ?? (await findSegmentIndex(source, signal));
    if (found === null) return { addressing: 'none', init: null, segments: [] };
    const index = await readSegmentIndex(source, found, signal);
    const init = readInitialization(task, elements) ?? headOf(path, found);
    return {
      addressing: 'base',
      init: init.path === path ? await withFileType(upTo(found, init), source, signal) : init,
      segments: index.subsegments.map(({ offset, length, durationTicks }) => ({
        part: { path, range: { offset, length } },
        durationSeconds: durationTicks / index.timescale,
      })),
      index,
    };
  } finally {
    await source.close();
  }
}

function isMp4({ lineage }: AddressingTask): boolean {
  const mimeType = lineage
    .map((element) => element.attributes.get('mimeType'))
    .findLast((value) => value !== undefined);
  return mimeType === undefined || mimeType.toLowerCase().endsWith('/mp4');
}

function statedIndexRange({ values }: AddressingTask, elements: AddressingElements): ByteRange | null {
  const element = elements.findLast((candidate) => candidate.attributes.has('indexRange'));
  return element === undefined ? null : values.byteRange(element, 'indexRange');
}

/** Some writers count the last byte one too far: what is less than a box of the index belongs to it alone. */
function upTo(index: ByteRange, init: MediaPart): MediaPart {
  const { offset, length } = init.range ?? { offset: 0, length: 0 };
  const passedBytes = offset + length - index.offset;
  if (passedBytes <= 0 || passedBytes >= BOX_HEADER_SIZE_BYTES) return init;
  return { path: init.path, range: { offset, length: length - passedBytes } };
}

/** Some packagers begin the init segment behind the file's `ftyp` box, which is part of it (ISO/IEC 14496-12 §8.16.2). */
async function withFileType(init: MediaPart, source: ByteSource, signal: AbortSignal): Promise<MediaPart> {
  const { offset, length } = init.range ?? { offset: 0, length: 0 };
  if (offset < 8) return init;
  const header = await readRange(source, 0, 8, signal);
  const startsFile = header.toString('latin1', 4, 8) === 'ftyp' && header.readUInt32BE(0) <= offset;
  return startsFile ? { path: init.path, range: { offset: 0, length: offset + length } } : init;
}

/** What stands before the segment index is the init segment, where the MPD does not say. */
function headOf(path: string, index: ByteRange): MediaPart {
  return { path, range: { offset: 0, length: index.offset } };
}
