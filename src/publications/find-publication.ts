import { readRange } from '#bytes/byte-source.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { BOX_HEADER_SIZE_BYTES } from '#formats/isobmff-boxes.ts';
import {
  auxiliaryKindOf,
  type ExistingPublication,
  type ExistingRendition,
  holdsPictures,
  mimeTypeOf,
  type SegmentKind,
} from './existing-publication.ts';
import { beginsOtherContainer, listTopBoxes, readerOf } from './fragments/top-boxes.ts';
import { type MediaPart, rangeOf } from './media-part.ts';
import { MAX_NAMES_SHOWN, matchingPaths } from './path-patterns.ts';
import { isHidden } from './playlists/file-names.ts';
import { FolderIndex } from './playlists/folder-index.ts';
import { attributeOf, type HlsLine } from './playlists/hls-lines.ts';
import { partOf, referencesOf } from './playlists/hls-playlist.ts';
import { chooseOtherFiles } from './playlists/other-files.ts';
import type { HlsMedia, MpdRepresentation, PlaylistDocument } from './playlists/playlist-document.ts';
import {
  isXml,
  partialSegmentIn,
  readPlaylists,
  readPlaylistText,
  wholeEncryptionIn,
} from './playlists/read-playlists.ts';
import { areWholeFragments } from './playlists/rendition-listings.ts';
import { childrenOf } from './playlists/xml-element.ts';
import type { PublicationPatterns } from './publication.ts';
import type { PublicationFolder } from './publication-folder.ts';
import { refusal, refuseRangesPastEnd } from './refuse-unjoinable.ts';

/**
 * Finds the publication in a folder that is to be packaged: playlists that name segments. `readPublication` reads one
 * that is to be signed, by patterns that name its parts. `patterns` choose its files; without one for playlists every
 * .m3u8 and .mpd is read. Resolves with null when there is none: lists of songs have the same extensions. Throws
 * `PLAYLIST_…` for a playlist, `PUBLICATION_TOO_LARGE`, `SEGMENT_INDEX_MALFORMED`, `FRAGMENT_MALFORMED` or `BMFF_…` for
 * boxes, `PATTERN_INVALID` or `PATTERN_NO_MATCH` for a pattern, `BYTE_RANGE_PAST_END` for bytes that are not there, and
 * `PUBLICATION_NOT_REPACKAGED` for segments that cannot be read or joined.
 */
export async function findPublication(
  folder: PublicationFolder,
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
    refuseKeyFramesAlone(playlists);
    return null;
  }
  const isChosen = choiceOf([...index.paths], patterns);
  const chosen = found.filter(isChosen);
  const unchosen = found.filter((rendition) => !isChosen(rendition));
  if (!chosen.some(isMedia)) throw noneChosen(patterns, found);
  refuseRangesPastEnd(chosen, folder);
  const isInParts = playlists.some((playlist) => partialSegmentIn(playlist) !== null);
  const segments = isInParts ? 'chunked' : await segmentKindOf(folder, chosen, signal);
  const parts = found.flatMap((rendition) => rendition.parts);
  const members = new Set([...playlists, ...parts].map(({ path }) => path));
  const candidates = [...index.paths].filter((path) => !members.has(path));
  const others = chooseOtherFiles(folder.files, index, { candidates, members, playlists });
  const copied = { paths: new Set([...members, ...others.paths]), warnings: others.warnings };
  return { playlists, renditions: chosen, unchosen, segments, copied, warnings: index.warnings };
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

/** Returns the playlists that a pattern finds; without one, those of the folder that are about media, and of hidden ones those given. */
export async function playlistsIn(
  folder: PublicationFolder,
  index: FolderIndex,
  pattern: string | null,
  signal: AbortSignal,
  hidden: ReadonlySet<string> = new Set(),
): Promise<string[]> {
  if (pattern !== null) return [...matchingPaths([...index.paths], pattern, 'params.playlist_pattern')];
  const isFound = (path: string): boolean => !isHidden(path) || hidden.has(path);
  const named = [...index.paths].filter((path) => /\.(?:m3u8|mpd)$/i.test(path) && isFound(path));
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
  const encryption = wholeEncryptionIn(playlist);
  if (encryption === null) return;
  const problem = 'Its segments are encrypted as a whole; package the media before they are encrypted';
  throw refusal(playlist.path, encryption.line, problem);
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
  for (const { parts } of media) if (await isOtherContainer(folder, itemAt(parts, 0), signal)) return 'webm';
  if (media.some(({ parts }) => parts.some(({ range }) => range !== null))) return 'byte-ranges';
  for (const { parts } of media) {
    const fragments = parts.slice(1);
    const sampled = new Set(SAMPLED_POSITIONS.flatMap((at) => fragments.at(at) ?? []));
    for (const part of sampled) if (await isChunked(folder, part, signal)) return 'chunked';
  }
  return 'cmaf';
}

/** Returns the kind of segments that have no init segment, by the first of them. */
async function bareKindOf(
  folder: SourceFolder,
  { playlist, parts }: ExistingRendition,
  signal: AbortSignal,
): Promise<SegmentKind> {
  const first = itemAt(parts, 0);
  return await withSource(folder, first, signal, async (source) => {
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
  });
}

/** Returns true where an init segment is one of a container other than MP4, such as WebM, which carries no manifest. */
export function isOtherContainer(folder: SourceFolder, init: MediaPart, signal: AbortSignal): Promise<boolean> {
  return withSource(folder, init, signal, async (source) => beginsOtherContainer(await readerOf(source, init, signal)));
}

function isChunked(folder: SourceFolder, part: MediaPart, signal: AbortSignal): Promise<boolean> {
  return withSource(folder, part, signal, async (source) => {
    const boxes = await listTopBoxes(await readerOf(source, part, signal));
    return ['moof', 'mdat'].some((type) => boxes.filter((box) => box.type === type).length !== 1);
  });
}

/** Globs of the request for the files of the publication; null where the request has none. */
export type ChoicePatterns = Readonly<Record<keyof PublicationPatterns, string | null>>;

export const NO_PATTERNS: ChoicePatterns = { playlist: null, init: null, frag: null };

/**
 * Returns a function that chooses the renditions of which the patterns find the init segment and a segment. Subtitles as text have
 * neither, and stay. Throws `PATTERN_NO_MATCH` for a pattern that finds nothing in the folder.
 */
function choiceOf(paths: readonly string[], { init, frag }: ChoicePatterns): (rendition: ExistingRendition) => boolean {
  const inits = init === null ? null : matchingPaths(paths, init, 'params.init_pattern');
  const frags = frag === null ? null : matchingPaths(paths, frag, 'params.frag_pattern');
  const fits = (found: ReadonlySet<string> | null, some: readonly MediaPart[]): boolean =>
    found === null || some.some(({ path }) => found.has(path));
  return (rendition) => {
    const { parts, hasInit, isText } = rendition;
    return isText || ((!hasInit || fits(inits, parts.slice(0, 1))) && fits(frags, segmentsOf(rendition)));
  };
}

type RenditionAttributes = Pick<ExistingRendition, 'language' | 'label' | 'role' | 'isDefault'>;

const NO_ATTRIBUTES: RenditionAttributes = { language: null, label: null, role: null, isDefault: false };

/**
 * Returns a rendition for every media playlist of segments, once, whichever playlists name it. Playlists of key frames are
 * renditions when there are no others.
 */
function renditionsOfHls(playlists: readonly PlaylistDocument[], index: FolderIndex): ExistingRendition[] {
  const attributes = attributesIn(playlists);
  const found = playlists.flatMap((playlist) => {
    if (playlist.kind !== 'hls-media' || playlist.segments.length === 0) return [];
    if (holdsPictures(playlist.segments.map(({ uri }) => uri))) return [];
    const rendition = renditionOf(playlist, attributes.get(playlist.path) ?? NO_ATTRIBUTES);
    return [{ rendition, isOfKeyFrames: playlist.iFramesOnly }];
  });
  const films = found.filter(({ isOfKeyFrames }) => !isOfKeyFrames);
  if (films.length > 0) return films.map(({ rendition }) => rendition);
  return found.map(({ rendition }) => rendition).filter((rendition) => areWholeFragments(segmentsOf(rendition), index));
}

/** Refuses key frames in fragments that nothing names: alone they cannot be read. */
function refuseKeyFramesAlone(playlists: readonly PlaylistDocument[]): void {
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-media' || !playlist.iFramesOnly || playlist.segments.length === 0) continue;
    const rendition = renditionOf(playlist, NO_ATTRIBUTES);
    const init = rendition.hasInit ? itemAt(rendition.parts, 0).path : null;
    // Those of one file lie in a film, which is packaged from that file.
    if (segmentsOf(rendition).some(({ path }) => path === init)) continue;
    const { line } = playlist.lines.find(({ name }) => name === 'EXT-X-I-FRAMES-ONLY') ?? { line: 1 };
    const problem =
      'It names key frames alone (#EXT-X-I-FRAMES-ONLY), and no playlist the fragments that they are in; add it';
    throw refusal(playlist.path, line, problem);
  }
}

function segmentsOf({ parts, hasInit }: ExistingRendition): readonly MediaPart[] {
  return parts.slice(hasInit ? 1 : 0);
}

function renditionOf(playlist: HlsMedia, attributes: RenditionAttributes): ExistingRendition {
  const { path, segments } = playlist;
  const map = segments[0]?.map ?? null;
  const parts = segments.map((segment) => partOf(playlist, segment));
  const init = map === null ? [] : [partOf(playlist, map)];
  return {
    name: path,
    playlist: path,
    parts: [...init, ...parts],
    hasInit: map !== null,
    isText: map === null && parts.every((part) => /\.(?:vtt|webvtt)$/i.test(part.path)),
    durationSeconds: segments.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0),
    ...attributes,
  };
}

/** Returns the attributes that EXT-X-MEDIA tags give media playlists, by path. */
function attributesIn(playlists: readonly PlaylistDocument[]): Map<string, RenditionAttributes> {
  const references = playlists.flatMap(referencesOf);
  return new Map(
    references.flatMap(({ tag, path }) => (tag?.name === 'EXT-X-MEDIA' ? [[path, attributesOf(tag)]] : [])),
  );
}

function attributesOf(tag: HlsLine): RenditionAttributes {
  const characteristics = attributeOf(tag, 'CHARACTERISTICS') ?? '';
  const role = characteristics.includes('describes-video')
    ? 'description'
    : characteristics.includes('transcribes-spoken-dialog')
      ? 'caption'
      : null;
  return {
    language: attributeOf(tag, 'LANGUAGE') ?? null,
    label: attributeOf(tag, 'NAME') ?? null,
    role,
    isDefault: attributeOf(tag, 'TYPE') === 'AUDIO' && attributeOf(tag, 'DEFAULT') === 'YES',
  };
}

/** Returns a rendition for every representation of every period. */
function renditionsOfMpd(playlists: readonly PlaylistDocument[]): ExistingRendition[] {
  return playlists.flatMap((playlist) => {
    if (playlist.kind !== 'mpd') return [];
    return playlist.representations
      .filter((representation) => auxiliaryKindOf(representation) === null && partsOf(representation).length > 0)
      .map((representation, number) => renditionOfMpd(playlist.path, representation, number));
  });
}

/** Returns the segments of a representation; subtitles may be one file without any. */
function partsOf({ addressing, segments, path, lineage: [, , set, element] }: MpdRepresentation): MediaPart[] {
  if (addressing !== 'none') return segments.map(({ part }) => part);
  return path !== undefined && isTextFile(mimeTypeOf(set, element)) ? [{ path, range: null }] : [];
}

/** Returns true for subtitles that are no fragments. */
function isTextFile(mimeType: string): boolean {
  return mimeType.startsWith('text/') || mimeType === 'application/ttml+xml';
}

function renditionOfMpd(playlist: string, representation: MpdRepresentation, number: number): ExistingRendition {
  const { init, segments, lineage } = representation;
  const parts = partsOf(representation);
  const [, , set, element] = lineage;
  const role = childrenOf(set, 'Role')[0]?.attributes.get('value') ?? null;
  return {
    name: `${playlist}#${number}`,
    playlist,
    parts: [...(init === null ? [] : [init]), ...parts],
    hasInit: init !== null,
    isText: init === null && isTextFile(mimeTypeOf(set, element)),
    durationSeconds: segments.reduce<number | null>(
      (sum, { durationSeconds }) => (sum === null || durationSeconds === null ? null : sum + durationSeconds),
      0,
    ),
    language: set.attributes.get('lang') ?? null,
    label: childrenOf(set, 'Label')[0]?.text ?? null,
    role,
    isDefault: role === 'main' && set.attributes.get('contentType') === 'audio',
  };
}
