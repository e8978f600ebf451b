import { itemAt } from '#errors/assert.ts';
import type { SignedParts } from '../fragments/signed-part.ts';
import { type ByteRange, partKey } from '../media-part.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { hlsAttribute, removeHlsAttribute, replaceHlsAttribute } from '../playlists/hls-attributes.ts';
import { addressesBelow, hlsLines } from '../playlists/hls-playlist.ts';
import type { HlsMap, HlsMedia, HlsMultivariant, HlsSegment } from '../playlists/playlist-document.ts';
import { type AddedRates, NOTHING_ADDED } from './added-rates.ts';
import { relativeReference } from './xml-edits.ts';

/** A byte range inside a fragment, as I-frame playlists have them, in the output. */
export interface MovedRange extends ByteRange {
  readonly path: string;
}

/** Finds where a byte range of a source file lies in the output; undefined where it lies in no signed fragment. */
export type MoveRange = (path: string, range: ByteRange) => Promise<MovedRange | undefined>;

/**
 * Rewrites the lines of a media playlist about files that moved: byte ranges that became files, and byte
 * ranges of single frames. Every other line stays as it is. Returns the same text where nothing changes.
 */
export async function rewriteHlsMedia(
  playlist: HlsMedia,
  index: FolderIndex,
  parts: SignedParts,
  moveRange: MoveRange,
): Promise<string> {
  const editor = new LineEditor(playlist.text);
  const base = index.baseOf(playlist.path);
  const pathOf = ({ uri, line }: HlsSegment | HlsMap): string =>
    index.locate(base, uri, { playlist: playlist.path, line });
  for (const map of new Set(playlist.segments.map((segment) => segment.map))) {
    if (map?.range == null) continue;
    const moved = parts.get(partKey(index.partAt(pathOf(map), map.range)));
    if (moved === undefined) continue;
    editor.edit(map.line, (line) => removeHlsAttribute(line, 'BYTERANGE'));
    if (moved.path === moved.source.path) continue;
    editor.edit(map.line, (line) => replaceHlsAttribute(line, 'URI', relativeReference(playlist.path, moved.path)));
  }
  for (const segment of playlist.segments) {
    if (segment.range === null) continue;
    const path = pathOf(segment);
    const whole = parts.get(partKey(index.partAt(path, segment.range)));
    const moved = whole ?? (await moveRange(path, index.rangeIn(path, segment.range)));
    if (moved === undefined) continue;
    if (moved.path !== path)
      editor.edit(segment.line, (line) => keepIndent(line, relativeReference(playlist.path, moved.path)));
    const tag = editor.lineBefore(segment.line, '#EXT-X-BYTERANGE:');
    if (tag === undefined) continue;
    if ('length' in moved) editor.edit(tag, (line) => line.replace(/:.*?(?=\r?$)/, `:${moved.length}@${moved.offset}`));
    else editor.remove(tag);
  }
  return editor.text();
}

/** A line keeps the carriage return that its text ends lines with. */
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

  /** The nearest line above that starts with `tag`, as far as the next address. */
  lineBefore(line: number, tag: string): number | undefined {
    for (let number = line - 1; number > 0; number -= 1) {
      const text = this.#lines[number - 1]?.trim() ?? '';
      if (text.startsWith(tag)) return number;
      if (text !== '' && !text.startsWith('#')) return undefined;
    }
    return undefined;
  }

  text(): string {
    return this.#lines.filter((line) => line !== null).join('\n');
  }
}

/** Attributes by which a variant names the groups that are played along with it. */
const GROUP_ATTRIBUTES = ['AUDIO', 'VIDEO', 'SUBTITLES'] as const;

/**
 * Raises BANDWIDTH and AVERAGE-BANDWIDTH by what signing added to each variant: to its own playlist, and to the largest
 * member of every group it plays along. `ratesOf` tells it for a media playlist by path.
 */
export function rewriteHlsMultivariant(
  playlist: HlsMultivariant,
  index: FolderIndex,
  ratesOf: (path: string) => AddedRates,
): string {
  const lines = hlsLines(playlist.path, playlist.text);
  const addresses = addressesBelow(lines);
  const base = index.baseOf(playlist.path);
  const ratesOfReference = (uri: string | undefined, line: number): AddedRates =>
    uri === undefined ? NOTHING_ADDED : ratesOf(index.locate(base, uri, { playlist: playlist.path, line }));

  const groups = new Map<string, AddedRates>();
  for (const [at, line] of lines.entries()) {
    if (!line.startsWith('#EXT-X-MEDIA:')) continue;
    const key = `${hlsAttribute(line, 'TYPE')} ${hlsAttribute(line, 'GROUP-ID')}`;
    groups.set(key, larger(groups.get(key) ?? NOTHING_ADDED, ratesOfReference(hlsAttribute(line, 'URI'), at + 1)));
  }
  const rewritten = playlist.text.split('\n').map((original, at) => {
    const line = itemAt(lines, at);
    if (line.startsWith('#EXT-X-I-FRAME-STREAM-INF:'))
      return raise(original, ratesOfReference(hlsAttribute(line, 'URI'), at + 1));
    if (!line.startsWith('#EXT-X-STREAM-INF:')) return original;
    const addressAt = itemAt(addresses, at);
    const alongside = GROUP_ATTRIBUTES.map(
      (name) => groups.get(`${name} ${hlsAttribute(line, name)}`) ?? NOTHING_ADDED,
    );
    return raise(original, sum([ratesOfReference(lines[addressAt], addressAt + 1), ...alongside]));
  });
  return rewritten.join('\n');
}

function raise(line: string, { peak, average }: AddedRates): string {
  return raiseAttribute(raiseAttribute(line, 'BANDWIDTH', peak), 'AVERAGE-BANDWIDTH', average);
}

function raiseAttribute(line: string, name: string, added: number): string {
  const value = hlsAttribute(line, name);
  if (added === 0 || value === undefined || !/^\d{1,15}$/.test(value)) return line;
  return replaceHlsAttribute(line, name, String(Number(value) + added));
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
