import { isXml } from '#publications/playlists/read-playlists.ts';
import { describeSegment, PLAYLIST_URL, pathOf, type Reading, type ReadPart } from './reading.ts';
import {
  loadShaka,
  type ManifestParser,
  type ShakaManifest,
  type ShakaPart,
  type ShakaPeriod,
  type ShakaStream,
} from './shaka-player.ts';

const shaka = loadShaka();
const CONFIGURATION = shaka.util.PlayerConfiguration.createDefault();

/** Periods of the MPD that is read, before Shaka joins those of one rendition into one stream. */
let periods: readonly ShakaPeriod[] = [];
const { combinePeriods } = shaka.util.PeriodCombiner.prototype;
Object.assign(shaka.util.PeriodCombiner.prototype, {
  combinePeriods(this: unknown, found: readonly ShakaPeriod[]) {
    periods = found;
    return combinePeriods.call(this as never, found);
  },
});
// A representation that is one file has no segments here, as in what the judge reads.
shaka.media.SegmentIndex.forSingleSegment = () => new shaka.media.SegmentIndex([]);

/** Address of a multivariant playlist around the one that is read. */
const ENTRY_URL = new URL('entry', PLAYLIST_URL).href;
const CODECS = 'CODECS="avc1.42c00c,mp4a.40.2"';
/** The media playlist at every address that is asked for. */
const MEDIA = '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.mp4\n#EXT-X-ENDLIST\n';
const MISSING = 2;
/** Type of requests for playlists. */
const MANIFEST = 0;

/** Reads with Shaka; null where it refuses the playlist. */
export function readShaka(text: string): Promise<Reading | null> {
  if (isXml(text)) return readMpd(text);
  return /^#EXT-X-(?:STREAM-INF|I-FRAME-STREAM-INF|MEDIA):/m.test(text) ? readMultivariant(text) : readMedia(text);
}

async function readMpd(text: string): Promise<Reading | null> {
  // It leaves out sets with essential properties that it does not know, which others play.
  if (text.includes('<EssentialProperty')) return null;
  const representations = await parse(
    new shaka.dash.DashParser(),
    PLAYLIST_URL,
    () => text,
    async () => {
      const streams = periods.flatMap(({ videoStreams, audioStreams, textStreams, imageStreams }) => [
        ...[...videoStreams, ...audioStreams, ...textStreams, ...imageStreams],
      ]);
      const read: { id: string; segments: string[] }[] = [];
      for (const stream of streams) read.push({ id: stream.originalId, segments: await segmentsOf(stream) });
      return read;
    },
  );
  return representations && { kind: 'mpd', representations };
}

/** Reads a media playlist as the one variant of another, which says the codecs that Shaka would look for in the media. */
async function readMedia(text: string): Promise<Reading | null> {
  // Shaka has key frames beside a variant only.
  if (text.includes('#EXT-X-I-FRAMES-ONLY')) return null;
  const entry = `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,${CODECS}\n${PLAYLIST_URL}\n`;
  const segments = await parse(
    new shaka.hls.HlsParser(),
    ENTRY_URL,
    (url) => (url === ENTRY_URL ? entry : text),
    async ({ variants: [variant] }) => {
      const stream = variant?.video ?? variant?.audio;
      return stream ? await segmentsOf(stream) : [];
    },
  );
  return segments && { kind: 'media', segments };
}

/** Reads which playlists are asked for: variants and renditions are not told apart. */
async function readMultivariant(text: string): Promise<Reading | null> {
  const ofKnownCodecs = text.replace(/^(#.*?\b)CODECS="[^"]*"/gm, `$1${CODECS}`);
  const asked = new Set<string>();
  const answer = (url: string, type: number): string => {
    if (url === PLAYLIST_URL) return ofKnownCodecs;
    if (type === MANIFEST) asked.add(pathOf(url));
    return MEDIA;
  };
  const read = await parse(new shaka.hls.HlsParser(), PLAYLIST_URL, answer, async ({ variants, textStreams }) => {
    const streams = [...variants.flatMap(({ video, audio }) => [video, audio]), ...textStreams];
    for (const stream of streams) await stream?.createSegmentIndex();
    return true;
  });
  return read === null ? null : { kind: 'multivariant', variants: [...asked], renditions: [], keyFrames: [] };
}

/** Has a parser of Shaka read the playlist at an address, and takes what is wanted of it while the parser has not stopped. */
async function parse<Result>(
  parser: ManifestParser,
  url: string,
  answer: (url: string, type: number) => string,
  read: (manifest: ShakaManifest) => Promise<Result>,
): Promise<Result | null> {
  const request = (type: number, { uris: [uri = ''] }: { readonly uris: readonly string[] }): object => {
    const data = new TextEncoder().encode(answer(uri, type)).buffer;
    const promise = Promise.resolve({ uri, originalUri: uri, data, headers: {}, status: 200 });
    return new shaka.util.AbortableOperation(promise, () => Promise.resolve());
  };
  const player = {
    networkingEngine: { request },
    filter: () => Promise.resolve(),
    getBandwidthEstimate: () => 1e6,
    getStreamingRetryParameters: () => CONFIGURATION.streaming.retryParameters,
    ...Object.fromEntries(CALLBACKS.map((name) => [name, () => undefined])),
  };
  try {
    parser.configure(CONFIGURATION.manifest);
    return await read(await parser.start(url, player));
  } catch {
    return null;
  } finally {
    await parser.stop();
  }
}

/** Methods of a player of which nothing comes back. */
const CALLBACKS =
  'makeTextStreamsForClosedCaptions onTimelineRegionAdded onEvent onError isLowLatencyMode updateDuration newDrmInfo onManifestUpdated onMetadata disableStream addFont onSegmentReceived'.split(
    ' ',
  );

async function segmentsOf(stream: ShakaStream): Promise<string[]> {
  await stream.createSegmentIndex();
  const segments: string[] = [];
  stream.segmentIndex.forEachTopLevelReference((reference) => {
    const init = reference.initSegmentReference;
    if (reference.status !== MISSING)
      segments.push(describeSegment(partOf(reference), init ? partOf(init) : undefined));
  });
  return segments;
}

function partOf(part: ShakaPart): ReadPart {
  const [url = ''] = part.getUris();
  const [start, end] = [part.getStartByte(), part.getEndByte()];
  return { url, range: end === null ? undefined : { offset: start, length: end - start + 1 } };
}
