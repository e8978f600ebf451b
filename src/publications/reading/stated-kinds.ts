import type { SourceFolder } from '#bytes/source-folder.ts';
import { type MediaPart, type PlaylistDocument, partKey } from '../publication.ts';
import { FolderIndex } from './folder-index.ts';
import { hlsAttribute } from './hls-attributes.ts';
import { addressesBelow, type HlsMultivariant, hlsLines } from './hls-playlist.ts';
import { statementsOf } from './rendition-statement.ts';

/** What a playlist says that an init segment is of, and on which line. */
export interface StatedKind {
  readonly kind: 'video' | 'audio';
  readonly playlist: string;
  readonly line: number;
}

/** Codecs of pictures, by the beginnings of their names in CODECS (RFC 6381). */
const VIDEO_CODECS = /^(?:avc|hvc|hev|dvh|dva|dav|av01|vp0?[89]|vvc|vvi|mp4v|jxs|lvc)/;

/** What playlists say of their init segments, by `partKey`; where they say nothing, there is no entry. */
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

/** What a multivariant playlist says of the media playlists that it names, by path. */
function* kindsOfVariants({ path, text }: HlsMultivariant, index: FolderIndex): Generator<[string, StatedKind]> {
  const base = index.baseOf(path);
  const lines = hlsLines(path, text);
  const addresses = addressesBelow(lines);
  for (const [at, line] of lines.entries()) {
    const isMedia = line.startsWith('#EXT-X-MEDIA:');
    if (!isMedia && !line.startsWith('#EXT-X-STREAM-INF:')) continue;
    const kind = isMedia ? kindOfMedia(line) : kindOfVariant(line);
    const uriAt = isMedia ? at : (addresses[at] as number);
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
