import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { FolderIndex } from './folder-index.ts';
import { parseHlsPlaylist } from './hls-playlist.ts';
import { MAX_PLAYLIST_BYTES, MAX_PLAYLIST_LINE_LENGTH, MAX_PLAYLIST_LINES, MAX_PLAYLISTS } from './limits.ts';
import type { PlaylistDocument } from './playlist-document.ts';
import { readMpd } from './read-mpd.ts';

/**
 * Reads the playlists at `entryPaths` and every media playlist that they name. Each is read once, so playlists that
 * name one another in a circle end. `known` keeps what was read, and what went wrong, for further calls.
 */
export async function readPlaylists(
  folder: SourceFolder,
  index: FolderIndex,
  entryPaths: Iterable<string>,
  signal: AbortSignal,
  known = new Map<string, Promise<PlaylistDocument>>(),
): Promise<PlaylistDocument[]> {
  const found = new Set(entryPaths);
  const documents: PlaylistDocument[] = [];
  // A set is walked in the order of insertion, and what is added on the way is walked too.
  for (const path of found) {
    if (found.size > MAX_PLAYLISTS) {
      throw new AppError('PUBLICATION_TOO_LARGE', { what: 'playlists', count: found.size, limit: MAX_PLAYLISTS });
    }
    signal.throwIfAborted();
    const reading = known.get(path) ?? readPlaylist(folder, index, path, signal);
    known.set(path, reading);
    const document = await reading;
    documents.push(document);
    if (document.kind !== 'hls-multivariant') continue;
    for (const { uri, line } of document.references) {
      const named = index.locate(index.baseOf(path), uri, { playlist: path, line });
      // Where missing files are kept, what a missing playlist names is not known.
      if (index.has(named) || index.isUnlisted) found.add(named);
    }
  }
  return documents;
}

async function readPlaylist(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  signal: AbortSignal,
): Promise<PlaylistDocument> {
  const text = await readPlaylistText(folder, path, signal);
  if (isXml(text)) return await readMpd(folder, index, path, text, signal);
  if (/^\uFEFF?#EXTM3U/.test(text)) return parseHlsPlaylist(path, text);
  throw new AppError('PLAYLIST_MALFORMED', {
    playlist: path,
    line: 1,
    problem: 'it is neither HLS (#EXTM3U) nor an MPD',
  });
}

/** Refuses playlists whose segments cannot be signed as they are: those encrypted as a whole, and those named in parts. */
export function refuseUnsignable(playlists: readonly PlaylistDocument[]): void {
  for (const playlist of playlists) {
    if (playlist.kind === 'hls-multivariant') continue;
    for (const [index, line] of playlist.text.split('\n').entries()) {
      const place = { playlist: playlist.path, line: index + 1 };
      const method = wholeEncryptionIn(line);
      if (method !== null) {
        throw new AppError('PLAYLIST_UNSUPPORTED', {
          ...place,
          feature: `A segment that is encrypted as a whole (${method})`,
          remedy: 'Use sample encryption (SAMPLE-AES, SAMPLE-AES-CTR, CENC), or sign before encrypting.',
        });
      }
      if (namesParts(line)) {
        throw new AppError('PLAYLIST_UNSUPPORTED', {
          ...place,
          feature: 'A low-latency playlist of partial segments',
          remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
        });
      }
    }
  }
}

/** Returns the words of a line by which segments are encrypted as a whole, in HLS or in DASH (ISO/IEC 23009-4); else null. */
export function wholeEncryptionIn(line: string): string | null {
  return (
    (/^\s*#EXT-X-KEY:.*(METHOD=AES-[\w-]+)/.exec(line) ?? /<(?:\w+:)?(SegmentEncryption)\b/.exec(line))?.[1] ?? null
  );
}

/** Returns true when a line of a low-latency playlist names a partial segment. */
export function namesParts(line: string): boolean {
  return /^\s*#EXT-X-(?:PART|PRELOAD-HINT):/.test(line);
}

/** Reads a playlist or MPD as text, UTF-8 as both specifications ask, within the bounds on bytes and lines. */
export async function readPlaylistText(folder: SourceFolder, path: string, signal: AbortSignal): Promise<string> {
  const source = await folder.open(path, signal);
  try {
    refuseBeyond(path, 'bytes', source.sizeBytes, MAX_PLAYLIST_BYTES);
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
  refuseBeyond(path, 'lines', lineCount, MAX_PLAYLIST_LINES);
  if (!isXml(text))
    refuseBeyond(path, 'characters in one line', Math.max(longest, text.length - lineStart), MAX_PLAYLIST_LINE_LENGTH);
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

/** Returns true when the text is XML, so an MPD rather than an HLS playlist. */
export function isXml(text: string): boolean {
  return /^\uFEFF?\s*</.test(text);
}
