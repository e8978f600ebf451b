import { readRange } from '#bytes/byte-source.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import { partKey } from '../media-part.ts';
import { isPicture, isPlainText } from '../playlists/file-names.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { referencesOf } from '../playlists/hls-playlist.ts';
import { statedKinds } from '../playlists/mpd-kinds.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import {
  iFrameListingsOf,
  type ListedFragment,
  type RenditionListing,
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
/** Bytes of a file that have to look like text. */
const HEAD_SIZE_BYTES = 512;

/**
 * Finds what players play beside the renditions with init segments: transport streams, packed audio, files without
 * segments, and I-frames that lie in no fragment, or under an init segment of nobody else's. `listings` are those of the playlists. Subtitles as text and
 * pictures, which never carry a manifest, are left out where they are what their names say.
 */
export async function findUnboundMedia(
  folder: Pick<SourceFolder, 'open'>,
  playlists: readonly PlaylistDocument[],
  listings: readonly RenditionListing[],
  index: FolderIndex,
  signal: AbortSignal,
): Promise<UnboundMedia[]> {
  const named = new Set(listings.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)));
  const inits = new Set(listings.flatMap(({ init }) => (init === null ? [] : [partKey(init.part)])));
  const candidates: UnboundMedia[] = [
    ...listings.filter(({ init }) => init === null),
    ...playlists.flatMap(wholeFilesOf),
    ...iFrameListingsOf(playlists, index).filter(
      ({ init, fragments }) =>
        (init !== null && !inits.has(partKey(init.part))) || fragments.some(({ part }) => !named.has(part.path)),
    ),
  ];
  const statedOf = statedUses(playlists, index);
  const found = new Map<string, UnboundMedia>();
  for (const candidate of candidates) {
    const [first] = candidate.fragments;
    if (first === undefined || found.has(partKey(first.part))) continue;
    const stated = statedOf(candidate);
    const isAuxiliary = stated !== 'media' && (await areTextOrPictures(folder, candidate, stated, index, signal));
    if (!isAuxiliary) found.set(partKey(first.part), candidate);
  }
  return [...found.values()];
}

/** The use that playlists state for files: `text` may be an entry of its own. */
type StatedUse = 'media' | 'text' | 'text or pictures';

/** Returns a function that tells what playlists say files are: names and first bytes of files may lie. */
function statedUses(
  playlists: readonly PlaylistDocument[],
  index: FolderIndex,
): (candidate: UnboundMedia) => StatedUse {
  const references = playlists.flatMap((playlist) => referencesOf(playlist, index));
  const media = new Set(references.filter(({ isOfMedia }) => isOfMedia).map(({ path }) => path));
  const named = new Set(references.map(({ path }) => path));
  const kinds = new Map(
    playlists.flatMap((playlist) =>
      playlist.kind === 'mpd'
        ? playlist.representations.map(
            ({ line, lineage }) => [`${playlist.path}\n${line}`, statedKinds(lineage)] as const,
          )
        : [],
    ),
  );
  return ({ playlist, fragments: [first] }) => {
    const stated = kinds.get(`${playlist}\n${first?.line ?? 0}`);
    if (stated !== undefined) return stated.has('video') || stated.has('audio') ? 'media' : 'text or pictures';
    if (media.has(playlist)) return 'media';
    return named.has(playlist) ? 'text or pictures' : 'text';
  };
}

async function areTextOrPictures(
  folder: Pick<SourceFolder, 'open'>,
  { fragments }: UnboundMedia,
  stated: StatedUse,
  index: FolderIndex,
  signal: AbortSignal,
): Promise<boolean> {
  const paths = [...new Set(fragments.map(({ part }) => part.path))];
  const isFit = (path: string): boolean => isPlainText(path) || (stated !== 'text' && isPicture(path));
  if (!paths.every(isFit)) return false;
  const present = paths.filter((path) => index.has(path));
  const verified = await mapConcurrent(present, MAX_CONCURRENT_FILES, async (path) => {
    const head = await withSource(folder, { path }, signal, (source) =>
      readRange(source, 0, Math.min(source.sizeBytes, HEAD_SIZE_BYTES), signal),
    );
    return (isText(head) && (stated !== 'text' || isUtf8(head))) || stillMediaType(head)?.startsWith('image/') === true;
  });
  return verified.every((isAuxiliary) => isAuxiliary);
}

/**
 * Returns true for text, by its bytes: every packet of a transport stream, and every box, has a zero in it. Text has
 * none, unless it is UTF-16.
 */
function isText(head: Buffer): boolean {
  if (/^(?:\xff\xfe|\xfe\xff)/.test(head.toString('latin1', 0, 2))) return true;
  return !head.includes(0);
}

/** Returns true for the beginning of a text in UTF-8, as packed audio is none. */
function isUtf8(head: Buffer): boolean {
  try {
    // The last character may be cut.
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}
