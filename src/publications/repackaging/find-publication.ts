import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { BOX_HEADER_SIZE_BYTES } from '#formats/isobmff/box.ts';
import { type MediaPart, type PlaylistDocument, partKey } from '../publication.ts';
import { chooseCarried, isHidden } from '../reading/carried-files.ts';
import { FolderIndex } from '../reading/folder-index.ts';
import { matchingPaths, NAMES_SHOWN } from '../reading/path-patterns.ts';
import { isXml, readPlaylistText } from '../reading/playlist-text.ts';
import { readPlaylists } from '../reading/read-playlists.ts';
import { namesParts, wholeEncryptionIn } from '../reading/refuse-unsignable.ts';
import { listTopBoxes, rangeOf, readerOf } from '../signing/top-boxes.ts';
import { type ChoicePatterns, chooseRenditions } from './choose-renditions.ts';
import type { ExistingPublication, ExistingRendition, SegmentKind } from './existing-publication.ts';
import { refuseKeyFramesAlone, renditionsOfHls } from './hls-renditions.ts';
import { renditionsOfMpd } from './mpd-renditions.ts';
import { refusal } from './repackaging-refusal.ts';

/**
 * Finds out whether a folder is a publication: whether a playlist in it names segments. `patterns` choose its
 * files; without one for playlists every .m3u8 and .mpd is looked at. Null where there is none: lists of songs have the same names.
 * Playlists that do not parse, or that name what is not there, are errors.
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
  const carried = chooseCarried(folder.files, index, { candidates, members, playlists });
  const copied = { paths: new Set([...members, ...carried.paths]), warnings: carried.warnings };
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
  const names = renditions.slice(0, NAMES_SHOWN).flatMap(({ parts }) => parts.at(frag === null ? 0 : -1)?.path ?? []);
  return new AppError('PATTERN_NO_MATCH', { pattern: frag ?? init ?? '', names, fileCount: names.length }, { field });
}

async function playlistsIn(
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

/** What is encrypted as a whole, nobody can look at. */
function refuseEncrypted(playlist: PlaylistDocument): void {
  if (playlist.kind === 'hls-multivariant') return;
  const at = playlist.text.split('\n').findIndex((line) => wholeEncryptionIn(line) !== null);
  if (at === -1) return;
  const problem = 'Its segments are encrypted as a whole; package the media before they are encrypted';
  throw refusal(playlist.path, at + 1, problem);
}

/** Parts of a rendition that are looked at: playlists are written by one program, and it writes all segments alike. */
const LOOKED_AT = [0, 1, -1];

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
      LOOKED_AT.map((at) => fragments.at(at)).flatMap((part) => (part === undefined ? [] : [[partKey(part), part]])),
    );
    for (const part of looked.values()) if (await isChunked(folder, part, signal)) return 'chunked';
  }
  return 'cmaf';
}

/** What segments without an init segment are, by the first of them. */
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
