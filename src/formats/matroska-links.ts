import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { elementAt, MAX_HEADER_BYTES, unsignedOf } from './ebml.ts';

// Matroska can say that segments of other files play before, behind or within its own (RFC 9559 §17).

/** IDs of elements (RFC 9559 §5.1). */
const HEADER = 0x1a45dfa3;
const SEGMENT = 0x18538067;
const CLUSTER = 0x1f43b675;
const SEEK_POSITION = 0x53ac;
/** SeekHead and Seek, Info, Chapters, EditionEntry and ChapterAtom: elements around those that are looked for. */
const ENTERED = new Set([SEGMENT, 0x114d9b74, 0x4dbb, 0x1549a966, 0x1043a770, 0x45b9, 0xb6]);
/** ChapterSegmentUUID, PrevUUID, NextUUID, PrevFilename and NextFilename. */
const LINKS = new Set([0x6e67, 0x3cb923, 0x3eb923, 0x3c83ab, 0x3e83bb]);
/** Largest number of elements that are visited: a chapter has some twenty. */
const MAX_ELEMENTS = 100_000;

/**
 * Tells whether a file is Matroska, or WebM, that links to segments of other files. Looks where players do: up to the first cluster, and
 * where the index of elements leads. A file with more elements there than any has may link to others.
 */
export async function linksToOtherFiles(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  const window = new ReadWindow(source, signal);
  const visited = new Set<number>();
  const starts = [0];
  let segmentStart = 0;
  for (const start of starts) {
    for (let offset = start; offset < source.sizeBytes && !visited.has(offset); ) {
      if (visited.size === MAX_ELEMENTS) return true;
      visited.add(offset);
      const limit = source.sizeBytes - offset;
      const element = elementAt(await window.read(offset, Math.min(MAX_HEADER_BYTES, limit)), 0, limit);
      if (element === null || element.id === CLUSTER || (offset === 0 && element.id !== HEADER)) break;
      if (LINKS.has(element.id)) return true;
      const contentAt = offset + element.start;
      if (element.id === SEGMENT) segmentStart = contentAt;
      if (element.id === SEEK_POSITION && element.end - element.start <= 8) {
        starts.push(segmentStart + unsignedOf(await window.read(contentAt, element.end - element.start)));
      }
      offset += ENTERED.has(element.id) ? element.start : element.end;
    }
  }
  return false;
}

/** Warns about links to segments of other files. */
export async function linkWarnings(source: ByteSource, signal: AbortSignal): Promise<Warning[]> {
  const isLinked = await linksToOtherFiles(source, signal);
  return isLinked ? [warning('MEDIA_IN_OTHER_FILES', { name: source.name, by: 'linked segments' })] : [];
}
