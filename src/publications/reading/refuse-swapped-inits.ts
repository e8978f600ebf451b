import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { InitLayout } from '../fragments/init-layout.ts';
import { describePart, type MediaPart, partKey } from '../media-part.ts';
import { FolderIndex } from '../playlists/folder-index.ts';
import { hlsAttribute } from '../playlists/hls-attributes.ts';
import { addressesBelow, hlsLines } from '../playlists/hls-playlist.ts';
import type { HlsMultivariant, PlaylistDocument } from '../playlists/playlist-document.ts';
import { statementsOf } from '../playlists/rendition-statements.ts';
import type { Publication } from '../publication.ts';

/** Handlers of pictures: moving ones, auxiliary ones such as transparency, and still ones. */
const HANDLERS: Readonly<Record<StatedKind['kind'], readonly string[]>> = {
  video: ['vide', 'auxv', 'pict'],
  audio: ['soun'],
};

/**
 * Refuses an init segment that is of another kind than a playlist says, as one that took the place of another: what plays
 * nowhere is not signed. An init segment of several tracks has to have one of the kind.
 */
export function refuseSwappedInits(
  folder: SourceFolder,
  { renditions, playlists }: Publication,
  inits: readonly InitLayout[],
): void {
  const kinds = statedKinds(folder, playlists);
  for (const [index, { init }] of renditions.entries()) {
    const handlers = inits[index]?.handlers ?? [];
    if (handlers.length === 0) continue;
    const wrong = kinds.get(partKey(init))?.find(({ kind }) => !handlers.some((each) => HANDLERS[kind].includes(each)));
    if (wrong !== undefined) throw new AppError('INIT_OF_OTHER_KIND', { ...wrong, init: describePart(init), handlers });
  }
}

/** The kind of media that a playlist says an init segment is for, and the line that says it. */
export interface StatedKind {
  readonly kind: 'video' | 'audio';
  readonly playlist: string;
  readonly line: number;
}

/** Codecs of pictures, by the beginnings of their names in CODECS (RFC 6381). */
const VIDEO_CODECS = /^(?:avc|hvc|hev|dvh|dva|dav|av01|vp0?[89]|vvc|vvi|mp4v|jxs|lvc)/;

/** Returns the kinds that playlists state for their init segments, by `partKey`; no entry where they state none. */
export function statedKinds(folder: SourceFolder, playlists: readonly PlaylistDocument[]): Map<string, StatedKind[]> {
  const index = new FolderIndex(folder);
  const kinds = new Map<string, StatedKind[]>();
  const note = (init: MediaPart, stated: StatedKind): void => {
    const known = kinds.get(partKey(init));
    if (known === undefined) kinds.set(partKey(init), [stated]);
    else known.push(stated);
  };
  const ofPlaylists = new Map(
    playlists.flatMap((playlist) =>
      playlist.kind === 'hls-multivariant' ? [...kindsOfVariants(playlist, index)] : [],
    ),
  );
  for (const { playlist, init } of statementsOf(playlists, index)) {
    const stated = ofPlaylists.get(playlist);
    if (init !== null && stated !== undefined) note(init.part, stated);
  }
  for (const playlist of playlists) {
    if (playlist.kind !== 'mpd') continue;
    for (const { init, line, lineage } of playlist.representations) {
      const [, , set, representation] = lineage;
      const kind = kindOfMpd((name) => representation.attributes.get(name) ?? set.attributes.get(name));
      if (init !== null && kind !== null) note(init, { kind, playlist: playlist.path, line });
    }
  }
  return kinds;
}

function kindOfMpd(attribute: (name: string) => string | undefined): StatedKind['kind'] | null {
  const type = attribute('contentType') ?? attribute('mimeType')?.split('/')[0];
  return type === 'video' || type === 'audio' ? type : null;
}

/** Returns the kinds that a multivariant playlist states for its media playlists, by path. */
function* kindsOfVariants({ path, text }: HlsMultivariant, index: FolderIndex): Generator<[string, StatedKind]> {
  const base = index.baseOf(path);
  const lines = hlsLines(path, text);
  const addresses = addressesBelow(lines);
  for (const [at, line] of lines.entries()) {
    const isMedia = line.startsWith('#EXT-X-MEDIA:');
    if (!isMedia && !line.startsWith('#EXT-X-STREAM-INF:')) continue;
    const kind = isMedia ? kindOfMedia(line) : kindOfVariant(line);
    const uriAt = isMedia ? at : itemAt(addresses, at);
    const uri = isMedia ? hlsAttribute(line, 'URI') : lines[uriAt];
    if (kind === null || uri === undefined) continue;
    const place = { playlist: path, line: uriAt + 1 };
    yield [index.locate(base, uri, place), { kind, playlist: path, line: at + 1 }];
  }
}

function kindOfMedia(line: string): StatedKind['kind'] | null {
  const type = hlsAttribute(line, 'TYPE');
  return type === 'AUDIO' ? 'audio' : type === 'VIDEO' ? 'video' : null;
}

/** A variant has the pictures itself, unless they are in a group of their own; its codecs include those of its groups. */
function kindOfVariant(line: string): StatedKind['kind'] | null {
  if (hlsAttribute(line, 'VIDEO') !== undefined) return null;
  const codecs = hlsAttribute(line, 'CODECS')
    ?.split(',')
    .map((codec) => codec.trim().toLowerCase());
  if (hlsAttribute(line, 'RESOLUTION') !== undefined || codecs?.some((codec) => VIDEO_CODECS.test(codec))) {
    return 'video';
  }
  return codecs === undefined || codecs.every((codec) => /^(?:st|wv)/.test(codec)) ? null : 'audio';
}
