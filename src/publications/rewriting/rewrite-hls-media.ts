import { type ByteRange, partKey } from '../publication.ts';
import type { FolderIndex } from '../reading/folder-index.ts';
import { removeHlsAttribute, replaceHlsAttribute } from '../reading/hls-attributes.ts';
import type { HlsMap, HlsMedia, HlsSegment } from '../reading/hls-playlist.ts';
import type { SignedParts } from '../signing/signed-part.ts';
import { relativeReference } from './relative-reference.ts';

/** A byte range inside a fragment, as I-frame playlists have them, at its place in the output. */
export interface MovedRange extends ByteRange {
  readonly path: string;
}

/** Finds where a byte range of a source file lies in the output; undefined where it lies in no signed fragment. */
export type MoveRange = (path: string, range: ByteRange) => Promise<MovedRange | undefined>;

/**
 * Rewrites what a media playlist says about files that changed their place: byte ranges that became files, and byte
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
