import { type Fragment, M3U8Parser, PlaylistLevelType } from 'hls.js';
import * as hlsParser from 'hls-parser';
import { Parser } from 'm3u8-parser';
import { describeSegment, PLAYLIST_URL, pathOf, type Reading, type ReadPart } from './reading.ts';

/** Reads an HLS playlist as a player does; null where it refuses the playlist, or does not know a feature of it. */
type HlsReader = (text: string) => Reading | null;

/** Reads with hls.js, that of the players that is used most. */
const readHlsJs: HlsReader = (text) => {
  if (!M3U8Parser.isMediaPlaylist(text)) return readHlsJsMultivariant(text);
  // For MPEG-TS it makes an init segment of the head of a file of key frames, where no EXT-X-MAP stands since the last
  // discontinuity. No fragment begins with a moov, so it plays nothing else.
  const asMedia = text.replace('#EXT-X-I-FRAMES-ONLY', '#');
  const level = M3U8Parser.parseLevelPlaylist(asMedia, PLAYLIST_URL, 0, PlaylistLevelType.MAIN, 0, null);
  if (level.playlistParsingError !== null) return null;
  const fragments = level.fragments.filter((fragment) => fragment?.gap !== true);
  return { kind: 'media', segments: fragments.map(describeFragment) };
};

/** Describes a fragment; null is one that an update of the playlist left out. */
function describeFragment(fragment: Fragment | null): string {
  if (fragment === null) return 'nothing';
  const { initSegment } = fragment;
  return describeSegment(partOf(fragment), initSegment === null ? undefined : partOf(initSegment));
}

function partOf({ url, byteRange: [start, end] }: Pick<Fragment, 'url' | 'byteRange'>): ReadPart {
  return { url, range: start === undefined || end === undefined ? undefined : { offset: start, length: end - start } };
}

function readHlsJsMultivariant(text: string): Reading | null {
  // It leaves out variants with codecs that it does not know: that is a choice of what it can play, not a reading.
  const ofKnownCodecs = text.replace(/^(#.*?\b)CODECS="[^"]*"/gm, '$1CODECS="avc1.42c00c"');
  const parsed = M3U8Parser.parseMasterPlaylist(ofKnownCodecs, PLAYLIST_URL);
  if (parsed.playlistParsingError !== null) return null;
  const media = M3U8Parser.parseMasterPlaylistMedia(text, PLAYLIST_URL, parsed);
  const renditions = Object.values(media)
    .flatMap((each) => each ?? [])
    .filter(({ url }) => url !== '')
    .sort((first, second) => first.id - second.id);
  return {
    kind: 'multivariant',
    variants: parsed.levels.map(({ url }) => pathOf(url)),
    renditions: renditions.map(({ type, groupId, url }) => `${type} ${groupId} ${pathOf(url)}`),
    keyFrames: parsed.iframeVariants.map(({ url }) => pathOf(url)),
  };
}

/** Reads with m3u8-parser, that of video.js. */
const readM3u8Parser: HlsReader = (text) => {
  // It does not know gaps, and takes a multivariant playlist without a variant for an empty media playlist.
  if (text.includes('#EXT-X-GAP') || !/^#EXT(?:-X-STREAM-INF|INF):/m.test(text)) return null;
  const parser = new Parser();
  try {
    parser.push(text);
    parser.end();
  } catch {
    // It refuses keys that are no base64.
    return null;
  }
  const { segments, playlists, iFramePlaylists, mediaGroups } = parser.manifest;
  // A playlist without a variant is a media playlist to video.js.
  if (playlists === undefined) {
    return {
      kind: 'media',
      segments: segments.map((segment) =>
        describeSegment(parsedPart(segment), segment.map === undefined ? undefined : parsedPart(segment.map)),
      ),
    };
  }
  const renditions = Object.entries(mediaGroups ?? {}).flatMap(([type, groups]) =>
    Object.entries(groups).flatMap(([group, byName]) =>
      Object.values(byName).flatMap(({ uri }) => (uri === undefined ? [] : `${type} ${group} ${pathOf(uri)}`)),
    ),
  );
  return {
    kind: 'multivariant',
    variants: playlists.map(({ uri }) => pathOf(uri)),
    renditions,
    keyFrames: (iFramePlaylists ?? []).map(({ uri }) => pathOf(uri)),
  };
};

function parsedPart({ uri, byterange }: { uri: string; byterange?: ReadPart['range'] | undefined }): ReadPart {
  return { url: uri, range: byterange };
}

/** Reads with hls-parser, which tools on servers use. */
const readHlsParser: HlsReader = (text) => {
  // It does not replace variables, and takes apostrophes for quotes.
  if (/\{\$|^#.*'/m.test(text)) return null;
  hlsParser.setOptions({ strictMode: true, silent: true });
  const playlist = parsedOrNull(text);
  if (playlist === null) return null;
  if (!playlist.isMasterPlaylist) {
    const segments = (playlist as hlsParser.types.MediaPlaylist).segments.filter(
      // It makes a segment without an address of tags behind the last one, which nothing can play.
      ({ uri, gap }) => uri !== '' && !gap,
    );
    return {
      kind: 'media',
      segments: segments.map((segment) => describeSegment(listedPart(segment), listedMap(segment.map))),
    };
  }
  const { variants } = playlist as hlsParser.types.MasterPlaylist;
  const groups = variants.flatMap(({ audio, video, subtitles }) => [...audio, ...video, ...subtitles]);
  const renditions = groups
    .filter(({ uri }) => uri !== undefined)
    .map(({ type, groupId, uri }) => `${type} ${groupId} ${pathOf(uri ?? '')}`);
  return {
    kind: 'multivariant',
    variants: variants.filter(({ isIFrameOnly }) => !isIFrameOnly).map(({ uri }) => pathOf(uri)),
    renditions: [...new Set(renditions)],
    keyFrames: variants.filter(({ isIFrameOnly }) => isIFrameOnly).map(({ uri }) => pathOf(uri)),
  };
};

function parsedOrNull(text: string): ReturnType<typeof hlsParser.parse> | null {
  try {
    return hlsParser.parse(text);
  } catch {
    return null;
  }
}

type Listed = Pick<hlsParser.types.Segment, 'uri' | 'byterange'>;

function listedPart({ uri, byterange }: Listed): ReadPart {
  return { url: uri, range: byterange };
}

function listedMap(map: hlsParser.types.Segment['map'] | null): ReadPart | undefined {
  if (!map?.uri) return undefined;
  // It writes -1 for a range that begins with the file.
  const range = map.byterange && { ...map.byterange, offset: Math.max(map.byterange.offset, 0) };
  return { url: map.uri, range };
}

export const HLS_READERS: Readonly<Record<string, HlsReader>> = {
  'hls.js': readHlsJs,
  'm3u8-parser': readM3u8Parser,
  'hls-parser': readHlsParser,
};
