import { partitionPoint } from '#bytes/partition-point.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { outputPositions, readFragmentLayout } from '../fragments/fragment-layout.ts';
import type { SignedPart, SignedParts } from '../fragments/signed-part.ts';
import { readerOf } from '../fragments/top-boxes.ts';
import { type ByteRange, partKey } from '../media-part.ts';
import { attributeOf, type HlsLine, removeHlsAttribute, replaceHlsAttribute } from '../playlists/hls-lines.ts';
import { partOf, referencesOf } from '../playlists/hls-playlist.ts';
import type { HlsMedia, HlsMultivariant, HlsSegment } from '../playlists/playlist-document.ts';
import type { Publication } from '../publication.ts';
import { type AddedRates, addedRates, type GrownSegment, NOTHING_ADDED } from './added-rates.ts';
import { rewriteMpd } from './rewrite-mpd.ts';
import { relativeReference } from './xml-edits.ts';

/**
 * Rewrites the publication's playlists for its signed parts: declared bandwidths rise by what was added, and byte ranges
 * that became files are named as files. Returns the whole text by path of those that change; nothing else in them does.
 */
export async function rewritePlaylists(
  { playlists }: Publication,
  folder: SourceFolder,
  parts: SignedParts,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const moveRange = rangeMover(folder, parts, signal);
  const rewritten = new Map<string, string>();
  const rates = new Map<string, AddedRates>();
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-media') continue;
    const segments = await outputSegments(playlist, parts, moveRange);
    rates.set(playlist.path, addedRates(segments));
    rewritten.set(playlist.path, rewriteHlsMedia(playlist, segments, parts));
  }
  for (const playlist of playlists) {
    if (playlist.kind === 'mpd') rewritten.set(playlist.path, rewriteMpd(playlist, parts));
    if (playlist.kind === 'hls-multivariant') {
      rewritten.set(playlist.path, rewriteHlsMultivariant(playlist, rates));
    }
  }
  for (const { path, text } of playlists) if (rewritten.get(path) === text) rewritten.delete(path);
  return rewritten;
}

/** A segment of a media playlist as it is in the output. */
interface OutputSegment extends GrownSegment {
  readonly segment: HlsSegment;
  /** The path of its source. */
  readonly path: string;
  /** Undefined where it is no signed part, and lies in none. */
  readonly moved: SignedPart | MovedRange | undefined;
}

async function outputSegments(playlist: HlsMedia, parts: SignedParts, moveRange: MoveRange): Promise<OutputSegment[]> {
  const found: OutputSegment[] = [];
  for (const segment of playlist.segments) {
    const { durationSeconds } = segment;
    const part = partOf(playlist, segment);
    const { path, range } = part;
    const moved = parts.get(partKey(part)) ?? (range === null ? undefined : await moveRange(path, range));
    found.push({ segment, path, moved, durationSeconds, addedBytes: moved?.addedBytes ?? 0 });
  }
  return found;
}

/**
 * Moves byte ranges inside fragments, as I-frame playlists name them, to where they lie in the output. A range that
 * begins with the moof begins with it still: the Merkle box before it is not played.
 */
function rangeMover(folder: SourceFolder, parts: SignedParts, signal: AbortSignal): MoveRange {
  const byFile = Map.groupBy(
    [...parts.values()].filter(({ merkleBoxSizeBytes }) => merkleBoxSizeBytes > 0),
    ({ source }) => source.path,
  );
  for (const inFile of byFile.values()) inFile.sort((first, second) => startOf(first) - startOf(second));
  return async (path, range) => {
    const inFile = byFile.get(path) ?? [];
    const part = inFile[partitionPoint(inFile, (each) => startOf(each) > range.offset) - 1];
    return part === undefined || !holds(part, range) ? undefined : await moveInside(folder, part, range, signal);
  };
}

function startOf({ source }: SignedPart): number {
  return source.range?.offset ?? 0;
}

function holds({ source }: SignedPart, { offset, length }: ByteRange): boolean {
  return source.range === null || offset + length <= source.range.offset + source.range.length;
}

async function moveInside(
  folder: SourceFolder,
  { source: part, path, merkleBoxSizeBytes }: SignedPart,
  { offset, length }: ByteRange,
  signal: AbortSignal,
): Promise<MovedRange> {
  return await withSource(folder, part, signal, async (source) => {
    const layout = await readFragmentLayout(await readerOf(source, part, signal));
    const positions = outputPositions(layout, merkleBoxSizeBytes);
    const start = offset === layout.moof.offset ? positions.ofBox(layout.moof) : positions.ofBoundary(offset);
    const movedLength = positions.ofBoundary(offset + length) - start;
    return { path, offset: start, length: movedLength, addedBytes: movedLength - length };
  });
}

/** A byte range inside a fragment, as I-frame playlists have them, in the output. */
interface MovedRange extends ByteRange {
  readonly path: string;
  readonly addedBytes: number;
}

/** Finds where a byte range of a source file lies in the output; undefined where it lies in no signed fragment. */
type MoveRange = (path: string, range: ByteRange) => Promise<MovedRange | undefined>;

/**
 * Rewrites the lines of a media playlist about files that moved: byte ranges that became files, and byte
 * ranges of single frames. Every other line stays as it is. Returns the same text where nothing changes.
 */
function rewriteHlsMedia(playlist: HlsMedia, segments: readonly OutputSegment[], parts: SignedParts): string {
  const editor = new LineEditor(playlist.text);
  for (const map of new Set(playlist.segments.map((segment) => segment.map))) {
    if (map?.range == null) continue;
    const moved = parts.get(partKey(partOf(playlist, map)));
    if (moved === undefined) continue;
    editor.edit(map.line, (line) => removeHlsAttribute(line, 'BYTERANGE'));
    if (moved.path === moved.source.path) continue;
    editor.edit(map.line, (line) => replaceHlsAttribute(line, 'URI', relativeReference(playlist.path, moved.path)));
  }
  let hasMoved = false;
  for (const { segment, path, moved } of segments) {
    if (segment.range === null || moved === undefined) continue;
    hasMoved = true;
    if (moved.path !== path)
      editor.edit(segment.line, (line) => keepIndent(line, relativeReference(playlist.path, moved.path)));
    if (segment.rangeLine === null) continue;
    if ('length' in moved) editor.edit(segment.rangeLine, (line) => stateRange(line, moved));
    else editor.remove(segment.rangeLine);
  }
  // The range of a gap cannot go on where that of a segment ended which is a file now.
  for (const { range, rangeLine } of hasMoved ? playlist.gaps : []) {
    if (rangeLine !== null && range !== null) editor.edit(rangeLine, (text) => stateRange(text, range));
  }
  return editor.text();
}

/** Returns the line of an EXT-X-BYTERANGE tag with another range. */
function stateRange(line: string, { offset, length }: ByteRange): string {
  return line.replace(/:.*?(?=\r?$)/, `:${length}@${offset}`);
}

/** Replaces a line, and keeps the carriage return that its text ends lines with. */
function keepIndent(line: string, content: string): string {
  return content + (line.endsWith('\r') ? '\r' : '');
}

/** Edits lines by their number, counted from one. */
class LineEditor {
  readonly #lines: (string | null)[];

  constructor(text: string) {
    this.#lines = text.split('\n');
  }

  edit(line: number, change: (line: string) => string): void {
    const current = this.#lines[line - 1];
    if (current != null) this.#lines[line - 1] = change(current);
  }

  remove(line: number): void {
    this.#lines[line - 1] = null;
  }

  text(): string {
    return this.#lines.filter((line) => line !== null).join('\n');
  }
}

/** Attributes by which a variant names the groups that are played along with it. */
const GROUP_ATTRIBUTES = ['AUDIO', 'VIDEO', 'SUBTITLES'] as const;

/**
 * Raises BANDWIDTH and AVERAGE-BANDWIDTH by what signing added to each variant: to its own playlist, and to the largest
 * member of every group it plays along. `rates` are those of media playlists by path.
 */
function rewriteHlsMultivariant(playlist: HlsMultivariant, rates: ReadonlyMap<string, AddedRates>): string {
  const ratesOf = (path: string): AddedRates => rates.get(path) ?? NOTHING_ADDED;
  const references = referencesOf(playlist);
  const groups = new Map<string, AddedRates>();
  for (const { tag, path } of references) {
    if (tag?.name !== 'EXT-X-MEDIA') continue;
    const key = `${attributeOf(tag, 'TYPE')} ${attributeOf(tag, 'GROUP-ID')}`;
    groups.set(key, larger(groups.get(key) ?? NOTHING_ADDED, ratesOf(path)));
  }
  const alongside = (tag: HlsLine): AddedRates[] =>
    GROUP_ATTRIBUTES.map((name) => groups.get(`${name} ${attributeOf(tag, name)}`) ?? NOTHING_ADDED);
  const editor = new LineEditor(playlist.text);
  for (const { tag, path, isVariant, isOfKeyFrames } of references) {
    if (tag === null || !(isVariant || isOfKeyFrames)) continue;
    const { peak, average } = sum([ratesOf(path), ...(isVariant ? alongside(tag) : [])]);
    for (const [name, added] of Object.entries({ BANDWIDTH: peak, 'AVERAGE-BANDWIDTH': average })) {
      const value = attributeOf(tag, name);
      if (added === 0 || value === undefined || !/^\d{1,15}$/.test(value)) continue;
      editor.edit(tag.line, (line) => replaceHlsAttribute(line, name, String(Number(value) + added)));
    }
  }
  return editor.text();
}

function larger(first: AddedRates, second: AddedRates): AddedRates {
  return { peak: Math.max(first.peak, second.peak), average: Math.max(first.average, second.average) };
}

function sum(rates: readonly AddedRates[]): AddedRates {
  return rates.reduce(
    (total, { peak, average }) => ({ peak: total.peak + peak, average: total.average + average }),
    NOTHING_ADDED,
  );
}
