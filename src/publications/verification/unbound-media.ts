import { readRange } from '#bytes/byte-source.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import { partKey } from '../media-part.ts';
import { isPicture, isPlainText } from '../playlists/file-names.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { attributeOf } from '../playlists/hls-lines.ts';
import { referencesOf } from '../playlists/hls-playlist.ts';
import { MAX_TEXT_BYTES } from '../playlists/limits.ts';
import { statedKinds } from '../playlists/mpd-kinds.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import {
  hasInit,
  iFrameListingsOf,
  type ListedFragment,
  type RenditionListing,
  representationsIn,
  wholeFilesOf,
} from '../playlists/rendition-listings.ts';

/** Media that a playlist names and that no manifest binds, because no init segment could carry one. */
export interface UnboundMedia {
  readonly playlist: string;
  /** At least one. */
  readonly fragments: readonly ListedFragment[];
}

/** Files whose first bytes are read at once. */
const MAX_CONCURRENT_FILES = 8;
/** Bytes by which a picture is recognised. */
const HEAD_SIZE_BYTES = 16;
/** The beginning of WebVTT, of the root element of TTML, and of SubRip; some segments of text are empty. */
const TEXT_BEGINNING = /^(?:WEBVTT|<(?:[\w.-]+:)?tt[\s/>]|\d|$)/;
/** A character that is none of text: those by which players find sound and pictures in other bytes, such as AC-3, are among them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const CONTROL = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/;
/** An instruction or a comment of XML, which may stand before the root element. */
const BEFORE_ROOT = /^(?:<\?[^>]*\?>|<!--[\s\S]*?-->)/;

/**
 * Finds what players play beside the renditions with init segments: transport streams, packed audio, files without
 * segments, and I-frames that lie in no fragment, or under an init segment of nobody else's. `listings` are those of the playlists.
 * Text and pictures, which never carry a manifest, are left out where playlists name them as subtitles and pictures, and they are that.
 */
export async function findUnboundMedia(
  folder: Pick<SourceFolder, 'open'>,
  playlists: readonly PlaylistDocument[],
  listings: readonly RenditionListing[],
  index: FolderIndex,
  signal: AbortSignal,
): Promise<UnboundMedia[]> {
  const named = new Set(listings.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)));
  const inits = new Set(listings.filter(hasInit).map(({ init }) => partKey(init.part)));
  const candidates: UnboundMedia[] = [
    ...listings.filter(({ init }) => init === null),
    ...wholeFilesOf(playlists),
    ...iFrameListingsOf(playlists).filter(
      ({ init, fragments }) =>
        (init !== null && !inits.has(partKey(init.part))) || fragments.some(({ part }) => !named.has(part.path)),
    ),
  ];
  const statedOf = statedUses(playlists);
  const ofMpds = new Set(playlists.flatMap(({ kind, path }) => (kind === 'mpd' ? path : [])));
  const withInits = new Set(listings.filter(hasInit).map(({ playlist }) => playlist));
  const found = new Map<string, UnboundMedia>();
  for (const candidate of candidates) {
    const [first] = candidate.fragments;
    if (first === undefined || found.has(partKey(first.part))) continue;
    const { playlist } = candidate;
    // A playlist of media does not become one of text where it names some.
    const stated = withInits.has(playlist) && !ofMpds.has(playlist) ? 'media' : statedOf(candidate);
    const isAuxiliary = stated !== 'media' && (await areAll(stated, folder, candidate, index, signal));
    if (!isAuxiliary) found.set(partKey(first.part), candidate);
  }
  return [...found.values()];
}

/** The use that playlists state for files; what no playlist names as text or pictures is media. */
type StatedUse = 'media' | 'text' | 'pictures';

/** Returns a function that tells what playlists say files are: names and first bytes of files may lie. */
function statedUses(playlists: readonly PlaylistDocument[]): (candidate: UnboundMedia) => StatedUse {
  const uses = new Map<string, StatedUse>();
  for (const { path, isOfMedia, tag } of playlists.flatMap(referencesOf)) {
    const isText = tag !== null && attributeOf(tag, 'TYPE') === 'SUBTITLES';
    const use = isOfMedia ? 'media' : isText ? 'text' : 'pictures';
    uses.set(path, (uses.get(path) ?? use) === use ? use : 'media');
  }
  const kinds = new Map(
    representationsIn(playlists).map(({ playlist, line, lineage }) => [`${playlist}\n${line}`, statedKinds(lineage)]),
  );
  return ({ playlist, fragments: [first] }) => {
    const stated = kinds.get(`${playlist}\n${first?.line ?? 0}`);
    if (stated === undefined) return uses.get(playlist) ?? 'media';
    if (stated.has('video') || stated.has('audio')) return 'media';
    return stated.has('image') ? 'pictures' : 'text';
  };
}

/** Returns true where all files of a candidate that are there are text, or pictures. */
async function areAll(
  use: 'text' | 'pictures',
  folder: Pick<SourceFolder, 'open'>,
  { fragments }: UnboundMedia,
  index: FolderIndex,
  signal: AbortSignal,
): Promise<boolean> {
  const isNamed = use === 'text' ? isPlainText : isPicture;
  const paths = [...new Set(fragments.map(({ part }) => part.path))];
  if (!paths.every(isNamed)) return false;
  const present = paths.filter((path) => index.has(path));
  const verified = await mapConcurrent(present, MAX_CONCURRENT_FILES, (path) =>
    withSource(folder, { path }, signal, async (source) => {
      const { sizeBytes } = source;
      if (use === 'text') return sizeBytes <= MAX_TEXT_BYTES && isText(await readRange(source, 0, sizeBytes, signal));
      const head = await readRange(source, 0, Math.min(sizeBytes, HEAD_SIZE_BYTES), signal);
      return stillMediaType(head)?.startsWith('image/') === true;
    }),
  );
  return verified.every((isOfUse) => isOfUse);
}

/**
 * Returns true for text in UTF-8, by all of its bytes: every packet of a transport stream, and every box, has a zero in it, and packed
 * audio has bytes that UTF-8 never has. XML with another root element than TTML may be a playlist, which some players follow wherever
 * they find it.
 */
function isText(bytes: Buffer): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return !CONTROL.test(text) && TEXT_BEGINNING.test(contentOf(text));
  } catch {
    return false;
  }
}

/** Returns XML from its root element on, and other text from its first letter on. */
function contentOf(text: string): string {
  let content = text.trimStart();
  for (let before = BEFORE_ROOT.exec(content); before !== null; before = BEFORE_ROOT.exec(content)) {
    content = content.slice(before[0].length).trimStart();
  }
  return content;
}
