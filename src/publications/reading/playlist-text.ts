import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { PLAYLIST_LINE_MAX_LENGTH, PLAYLIST_MAX_BYTES, PLAYLIST_MAX_LINES } from './publication-limits.ts';

/** Reads a playlist or MPD as text, UTF-8 as both specifications ask, within the bounds on bytes and lines. */
export async function readPlaylistText(folder: SourceFolder, path: string, signal: AbortSignal): Promise<string> {
  const source = await folder.open(path, signal);
  try {
    refuseBeyond(path, 'bytes', source.sizeBytes, PLAYLIST_MAX_BYTES);
    const bytes = await readRange(source, 0, source.sizeBytes, signal);
    return checkedText(path, bytes);
  } finally {
    await source.close();
  }
}

function checkedText(path: string, bytes: Uint8Array): string {
  const text = decode(path, bytes);
  let lineCount = 1;
  let longest = 0;
  let lineStart = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', lineStart)) {
    lineCount += 1;
    longest = Math.max(longest, end - lineStart);
    lineStart = end + 1;
  }
  refuseBeyond(path, 'lines', lineCount, PLAYLIST_MAX_LINES);
  if (!isXml(text))
    refuseBeyond(path, 'characters in one line', Math.max(longest, text.length - lineStart), PLAYLIST_LINE_MAX_LENGTH);
  return text;
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line: 1, problem: 'it is not UTF-8 text' }, { cause });
  }
}

function refuseBeyond(playlist: string, what: string, count: number, limit: number): void {
  if (count > limit) throw new AppError('PLAYLIST_TOO_LARGE', { playlist, what, count, limit });
}

/** Whether the text is an XML document, so an MPD, rather than an HLS playlist. */
export function isXml(text: string): boolean {
  return /^\uFEFF?\s*</.test(text);
}

/** Tells the line of a character position. */
export class LineIndex {
  readonly #lineStarts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1);
  }

  /** The number, counted from one, of the line that the character at `index` stands in. */
  lineAt(index: number): number {
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.#lineStarts[middle] as number) <= index) low = middle;
      else high = middle;
    }
    return low + 1;
  }
}
