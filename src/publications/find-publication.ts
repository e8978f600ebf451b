import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { BOX_HEADER_SIZE_BYTES } from '#formats/isobmff-boxes.ts';
import type { ExistingPublication, ExistingRendition, SegmentKind } from './existing-publication.ts';
import { listTopBoxes, rangeOf, readerOf } from './fragments/top-boxes.ts';
import { type MediaPart, partKey } from './media-part.ts';
import { MAX_NAMES_SHOWN, matchingPaths } from './path-patterns.ts';
import { isHidden } from './playlists/file-names.ts';
import { FolderIndex } from './playlists/folder-index.ts';
import { chooseOtherFiles } from './playlists/other-files.ts';
import type { PlaylistDocument } from './playlists/playlist-document.ts';
import { isXml, namesParts, readPlaylists, readPlaylistText, wholeEncryptionIn } from './playlists/read-playlists.ts';
import { refusal } from './refuse-unjoinable.ts';
import { refuseKeyFramesAlone, renditionsOfHls, renditionsOfMpd } from './repackaging/existing-renditions.ts';

/**
 * Finds the publication in a folder that is to be packaged: playlists that name segments. `readPublication` reads one that is to
 * be signed, by patterns that name its parts. `patterns` choose its
 * files; without one for playlists every .m3u8 and .mpd is read. Null where there is none: lists of songs have the same extensions.
 * Throws `PLAYLIST_MALFORMED` or `PLAYLIST_FILE_MISSING` when a playlist does not parse or names a missing file.
 */
export async function findPublication(
  folder: SourceFolder,
  patterns: ChoicePatterns,
  signal: AbortSignal,
): Promise<ExistingPublication | null> {
  const index = new FolderIndex(folder);
  const entries = await playlistsIn(folder, index, patterns.playlist, signal);
  if (entries.length === 0) return null;
  const playlists = await readPlaylists(folder, index, entries, signal);
  for (const playlist of playlists) refuseEncrypted(playlist);
  const hls = renditionsOfHls(playlists, index);
  const found = hls.length > 0 ? hls : renditionsOfMpd(playlists);
  if (!found.some(isMedia)) {
    refuseKeyFramesAlone(playlists, index);
    return null;
  }
  const { chosen, unchosen } = chooseRenditions(found, [...index.paths], patterns);
  if (!chosen.some(isMedia)) throw noneChosen(patterns, found);
  const isInParts = playlists.some(({ kind, text }) => kind === 'hls-media' && text.split('\n').some(namesParts));
  const segments = isInParts ? 'chunked' : await segmentKindOf(folder, chosen, signal);
  const members = new Set([...playlists.map(({ path }) => path), ...found.flatMap(pathsOf)]);
  const candidates = [...index.paths].filter((path) => !members.has(path));
  const others = chooseOtherFiles(folder.files, index, { candidates, members, playlists });
  const copied = { paths: new Set([...members, ...others.paths]), warnings: others.warnings };
  return { playlists, renditions: chosen, unchosen, segments, copied, warnings: index.warnings };
}

function pathsOf({ parts }: ExistingRendition): string[] {
  return parts.map(({ path }) => path);
}

function isMedia({ isText }: ExistingRendition): boolean {
  return !isText;
}

function noneChosen({ init, frag }: ChoicePatterns, renditions: readonly ExistingRendition[]): AppError {
  const field = frag === null ? 'params.init_pattern' : 'params.frag_pattern';
  const names = renditions
    .slice(0, MAX_NAMES_SHOWN)
    .flatMap(({ parts }) => parts.at(frag === null ? 0 : -1)?.path ?? []);
  return new AppError('PATTERN_NO_MATCH', { pattern: frag ?? init ?? '', names, fileCount: names.length }, { field });
}

/** Returns the playlists that a pattern finds; without one, those of the folder that are about media. */
export async function playlistsIn(
  folder: SourceFolder,
  index: FolderIndex,
  pattern: string | null,
  signal: AbortSignal,
): Promise<string[]> {
  if (pattern !== null) return [...matchingPaths([...index.paths], pattern, 'params.playlist_pattern')];
  const named = [...index.paths].filter((path) => /\.(?:m3u8|mpd)$/i.test(path) && !isHidden(path));
  const found: string[] = [];
  for (const path of named) {
    const text = await readPlaylistText(folder, path, signal);
    // Every media playlist has a target duration (RFC 8216 §4.3.3.1); a list of songs has none.
    if (isXml(text) || /^#EXT-X-(?:TARGETDURATION|(?:I-FRAME-)?STREAM-INF|MEDIA):/m.test(text)) found.push(path);
  }
  return found;
}

/** Throws `PUBLICATION_NOT_REPACKAGED` when segments are encrypted as a whole. */
function refuseEncrypted(playlist: PlaylistDocument): void {
  if (playlist.kind === 'hls-multivariant') return;
  const at = playlist.text.split('\n').findIndex((line) => wholeEncryptionIn(line) !== null);
  if (at === -1) return;
  const problem = 'Its segments are encrypted as a whole; package the media before they are encrypted';
  throw refusal(playlist.path, at + 1, problem);
}

/** Fragments of a rendition that are inspected: one packager writes all segments of a rendition alike. */
const SAMPLED_POSITIONS = [0, 1, -1];

async function segmentKindOf(
  folder: SourceFolder,
  renditions: readonly ExistingRendition[],
  signal: AbortSignal,
): Promise<SegmentKind> {
  const media = renditions.filter(({ isText, hasInit }) => !isText || hasInit);
  const bare = media.find(({ hasInit }) => !hasInit);
  if (bare !== undefined) return await bareKindOf(folder, bare, signal);
  if (media.some(({ parts }) => parts.some(({ range }) => range !== null))) return 'byte-ranges';
  for (const { parts } of media) {
    const fragments = parts.slice(1);
    const looked = new Map(
      SAMPLED_POSITIONS.map((at) => fragments.at(at)).flatMap((part) =>
        part === undefined ? [] : [[partKey(part), part]],
      ),
    );
    for (const part of looked.values()) if (await isChunked(folder, part, signal)) return 'chunked';
  }
  return 'cmaf';
}

/** Returns the kind of segments that have no init segment, by the first of them. */
async function bareKindOf(
  folder: SourceFolder,
  { playlist, parts }: ExistingRendition,
  signal: AbortSignal,
): Promise<SegmentKind> {
  const [first] = parts as [MediaPart];
  const source = await folder.open(first.path, signal);
  try {
    const { offset, length } = rangeOf(first, source);
    // Bytes that are not there are refused where they would be joined.
    if (offset + length > source.sizeBytes) return 'packed-audio';
    const head = await readRange(source, offset, Math.min(BOX_HEADER_SIZE_BYTES, length), signal);
    if (head[0] === 0x47) return 'transport-stream';
    if (!/^(?:ftyp|styp|moov)$/.test(head.toString('latin1', 4))) return 'packed-audio';
    const boxes = await listTopBoxes(await readerOf(source, first, signal));
    if (parts.length > 1 && !boxes.some(({ type }) => type === 'moof')) {
      const problem = 'Its segments are whole MP4 files, and not fragments; package them as folders of their own';
      throw refusal(playlist, 1, problem);
    }
    return 'self-initialising';
  } finally {
    await source.close();
  }
}

async function isChunked(folder: SourceFolder, part: MediaPart, signal: AbortSignal): Promise<boolean> {
  const source = await folder.open(part.path, signal);
  try {
    const boxes = await listTopBoxes(await readerOf(source, part, signal));
    return (
      boxes.filter(({ type }) => type === 'moof').length !== 1 ||
      boxes.filter(({ type }) => type === 'mdat').length !== 1
    );
  } finally {
    await source.close();
  }
}

/** Globs of the request for the files of the publication; null where the request has none. */
export interface ChoicePatterns {
  readonly playlist: string | null;
  readonly init: string | null;
  readonly frag: string | null;
}

export const NO_PATTERNS: ChoicePatterns = { playlist: null, init: null, frag: null };

/** Renditions by whether the patterns choose them. */
export interface ChosenRenditions {
  readonly chosen: readonly ExistingRendition[];
  readonly unchosen: readonly ExistingRendition[];
}

/**
 * Chooses the renditions of which the patterns find the init segment and a segment. Subtitles as text have neither, and
 * stay. Throws PATTERN_NO_MATCH for a pattern that finds nothing in the folder.
 */
export function chooseRenditions(
  renditions: readonly ExistingRendition[],
  paths: readonly string[],
  { init, frag }: ChoicePatterns,
): ChosenRenditions {
  const inits = init === null ? null : matchingPaths(paths, init, 'params.init_pattern');
  const frags = frag === null ? null : matchingPaths(paths, frag, 'params.frag_pattern');
  const isChosen = ({ parts, hasInit, isText }: ExistingRendition): boolean => {
    if (isText) return true;
    const fits = (found: ReadonlySet<string> | null, some: readonly MediaPart[]): boolean =>
      found === null || some.some(({ path }) => found.has(path));
    const start = hasInit ? 1 : 0;
    return (!hasInit || fits(inits, parts.slice(0, start))) && fits(frags, parts.slice(start));
  };
  return { chosen: renditions.filter(isChosen), unchosen: renditions.filter((rendition) => !isChosen(rendition)) };
}
