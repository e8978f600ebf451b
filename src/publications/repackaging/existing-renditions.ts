import type { ExistingRendition } from '../existing-publication.ts';
import { auxiliaryKindOf, holdsPictures, mimeTypeOf } from '../existing-publication.ts';
import type { MediaPart } from '../media-part.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { hlsAttribute } from '../playlists/hls-attributes.ts';
import type { HlsMedia, MpdRepresentation, PlaylistDocument } from '../playlists/playlist-document.ts';
import { areWholeFragments } from '../playlists/rendition-statements.ts';
import { childrenOf } from '../playlists/xml-element.ts';
import { refusal } from '../refuse-unjoinable.ts';

type Statement = Pick<ExistingRendition, 'language' | 'label' | 'role' | 'isDefault'>;

const NOTHING_STATED: Statement = { language: null, label: null, role: null, isDefault: false };

/**
 * A rendition for every media playlist of segments, once, whichever playlists name it. Playlists of key frames are renditions
 * where there are no others.
 */
export function renditionsOfHls(playlists: readonly PlaylistDocument[], index: FolderIndex): ExistingRendition[] {
  const stated = statementsIn(playlists, index);
  const found = playlists.flatMap((playlist) => {
    if (playlist.kind !== 'hls-media' || playlist.segments.length === 0) return [];
    if (holdsPictures(playlist.segments.map(({ uri }) => uri))) return [];
    const rendition = renditionOf(playlist, index, stated.get(playlist.path) ?? NOTHING_STATED);
    return [{ rendition, isOfKeyFrames: playlist.iFramesOnly }];
  });
  const films = found.filter(({ isOfKeyFrames }) => !isOfKeyFrames);
  if (films.length > 0) return films.map(({ rendition }) => rendition);
  return found.map(({ rendition }) => rendition).filter((rendition) => areWholeFragments(segmentsOf(rendition), index));
}

/** Refuses key frames in fragments that nothing names: alone they cannot be read. */
export function refuseKeyFramesAlone(playlists: readonly PlaylistDocument[], index: FolderIndex): void {
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-media' || !playlist.iFramesOnly || playlist.segments.length === 0) continue;
    const rendition = renditionOf(playlist, index, NOTHING_STATED);
    const inits = new Set(rendition.parts.slice(0, rendition.hasInit ? 1 : 0).map(({ path }) => path));
    // Those of one file lie in a film, which is packaged from that file.
    if (segmentsOf(rendition).some(({ path }) => inits.has(path))) continue;
    const line = playlist.text.split('\n').findIndex((text) => text.startsWith('#EXT-X-I-FRAMES-ONLY')) + 1;
    const problem =
      'It names key frames alone (#EXT-X-I-FRAMES-ONLY), and no playlist the fragments that they are in; add it';
    throw refusal(playlist.path, line, problem);
  }
}

function segmentsOf({ parts, hasInit }: ExistingRendition): readonly MediaPart[] {
  return parts.slice(hasInit ? 1 : 0);
}

function renditionOf(playlist: HlsMedia, index: FolderIndex, stated: Statement): ExistingRendition {
  const { path, segments } = playlist;
  const base = index.baseOf(path);
  const locate = (uri: string, line: number): string => index.locate(base, uri, { playlist: path, line });
  const map = segments[0]?.map ?? null;
  const parts = segments.map(({ uri, line, range }) => index.partAt(locate(uri, line), range));
  const init = map === null ? [] : [index.partAt(locate(map.uri, map.line), map.range)];
  return {
    name: path,
    playlist: path,
    parts: [...init, ...parts],
    hasInit: map !== null,
    isText: map === null && parts.every((part) => /\.(?:vtt|webvtt)$/i.test(part.path)),
    durationSeconds: segments.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0),
    ...stated,
  };
}

/** Returns the attributes that EXT-X-MEDIA tags state for media playlists, by path. */
function statementsIn(playlists: readonly PlaylistDocument[], index: FolderIndex): Map<string, Statement> {
  const stated = new Map<string, Statement>();
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-multivariant') continue;
    const base = index.baseOf(playlist.path);
    for (const [at, line] of playlist.text.split('\n').entries()) {
      const uri = line.startsWith('#EXT-X-MEDIA:') ? hlsAttribute(line, 'URI') : undefined;
      if (uri === undefined) continue;
      stated.set(index.locate(base, uri, { playlist: playlist.path, line: at + 1 }), statementOf(line));
    }
  }
  return stated;
}

function statementOf(line: string): Statement {
  const characteristics = hlsAttribute(line, 'CHARACTERISTICS') ?? '';
  const role = characteristics.includes('describes-video')
    ? 'description'
    : characteristics.includes('transcribes-spoken-dialog')
      ? 'caption'
      : null;
  return {
    language: hlsAttribute(line, 'LANGUAGE') ?? null,
    label: hlsAttribute(line, 'NAME') ?? null,
    role,
    isDefault: hlsAttribute(line, 'TYPE') === 'AUDIO' && hlsAttribute(line, 'DEFAULT') === 'YES',
  };
}

/** A rendition for every representation of every period. */
export function renditionsOfMpd(playlists: readonly PlaylistDocument[]): ExistingRendition[] {
  return playlists.flatMap((playlist) => {
    if (playlist.kind !== 'mpd') return [];
    return playlist.representations
      .filter((representation) => auxiliaryKindOf(representation) === null && partsOf(representation).length > 0)
      .map((representation, number) => renditionOfMpd(playlist.path, representation, number));
  });
}

/** Its segments; subtitles may be one file without any. */
function partsOf({ addressing, segments, path, lineage: [, , set, element] }: MpdRepresentation): MediaPart[] {
  if (addressing !== 'none') return segments.map(({ part }) => part);
  return path !== undefined && isTextFile(mimeTypeOf(set, element)) ? [{ path, range: null }] : [];
}

/** Subtitles that are no fragments. */
function isTextFile(mimeType: string): boolean {
  return mimeType.startsWith('text/') || mimeType === 'application/ttml+xml';
}

function renditionOfMpd(playlist: string, representation: MpdRepresentation, number: number): ExistingRendition {
  const { init, segments, lineage } = representation;
  const parts = partsOf(representation);
  const [, , set, element] = lineage;
  const durations = segments.map(({ durationSeconds }) => durationSeconds);
  const role = childrenOf(set, 'Role')[0]?.attributes.get('value') ?? null;
  return {
    name: `${playlist}#${number}`,
    playlist,
    parts: [...(init === null ? [] : [init]), ...parts],
    hasInit: init !== null,
    isText: init === null && isTextFile(mimeTypeOf(set, element)),
    durationSeconds: durations.includes(null)
      ? null
      : durations.reduce<number>((sum, seconds) => sum + (seconds ?? 0), 0),
    language: set.attributes.get('lang') ?? null,
    label: childrenOf(set, 'Label')[0]?.text ?? null,
    role,
    isDefault: role === 'main' && set.attributes.get('contentType') === 'audio',
  };
}
