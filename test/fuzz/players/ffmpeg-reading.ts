import { execFile, execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isXml } from '#publications/playlists/read-playlists.ts';
import { judgedReading } from './own-reading.ts';
import { describePart, PLAYLIST_URL, pathOf, type Reading, type ReadPart } from './reading.ts';

/** Files that ffmpeg asked for, each with its range, in order; null where it does not know a feature of the playlist. */
type Opened = readonly string[] | null;

/** Some playlists have ffmpeg ask for the same again and again. */
const TIMEOUT_MS = 60_000;

/** A movie of a fragment, and the same as a transport stream. */
interface Film {
  readonly init: Buffer;
  readonly fragment: Buffer;
  readonly stream: Buffer;
}

const TEXT = 'WEBVTT\n\n00:00.000 --> 00:01.000\nText\n';
/** The one file of the media playlist that is at every address that a multivariant playlist names. */
const MEDIA_PATH = '/the/film.ts';
const MEDIA = `#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n${MEDIA_PATH}\n#EXT-X-ENDLIST\n`;

/** Has ffmpeg play playlists from a server that has something at every address, and notes what it asks for. */
export class Ffmpeg {
  readonly #server: Server;
  readonly #film = makeFilm();
  /** Playlists that were compared. */
  played = 0;
  #answer: (part: ReadPart) => string | Buffer = () => '';

  private constructor() {
    // It is the proxy of ffmpeg, so that addresses on other servers arrive here too.
    this.#server = createServer(({ url = '', headers }, response) => {
      const address = Buffer.from(url, 'latin1').toString('utf8');
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
      const range =
        last === undefined ? undefined : { offset: Number(first), length: Number(last) - Number(first) + 1 };
      const body = this.#answer({ url: address, range });
      const size = Buffer.byteLength(body);
      const partial = range && { 'content-range': `bytes ${first}-${range.offset + size - 1}/*` };
      response.writeHead(range === undefined ? 200 : 206, { connection: 'close', 'content-length': size, ...partial });
      response.end(body);
    });
  }

  static async start(): Promise<Ffmpeg> {
    const ffmpeg = new Ffmpeg();
    await new Promise<void>((resolve) => void ffmpeg.#server.listen(0, '127.0.0.1', resolve));
    return ffmpeg;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Plays a playlist, and says where it opens other files than the judge reads; null where it does not, or the judge finds fault. */
  async differenceOf(text: string): Promise<string | null> {
    const judged = await judgedReading(text);
    const opened = judged && (await this.#play(text, judged));
    if (judged === null || opened === null) return null;
    this.played += 1;
    return differenceOfOpened(opened, judged);
  }

  /** Plays a playlist; `judged` says which of its files are playlists and init segments. */
  async #play(text: string, judged: Reading): Promise<Opened> {
    if (!isKnown(text, judged) || !segmentsOf(judged).every((segment) => this.#fits(segment))) return null;
    const opened: string[] = [];
    this.#answer = ({ url, range }) => {
      if (pathOf(url) === pathOf(PLAYLIST_URL)) return text;
      const part = describePart({ url, range });
      const isPlaylist = judged.kind === 'multivariant' && pathOf(url) !== MEDIA_PATH;
      if (judged.kind !== 'multivariant' || isPlaylist) opened.push(part);
      if (isPlaylist) return MEDIA;
      if (pathOf(url).endsWith('.vtt')) return TEXT;
      const { init, fragment, stream } = this.#film;
      if (initsOf(judged).size === 0) {
        return judged.kind === 'mpd' ? Buffer.concat([init, at(fragment, timeOf(part, judged))]) : stream;
      }
      return initsOf(judged).has(part) ? init : at(fragment, timeOf(part, judged));
    };
    const { port } = this.#server.address() as AddressInfo;
    const format = isXml(text) ? ['-f', 'dash'] : ['-f', 'hls', '-allowed_extensions', 'ALL', '-http_multiple', '0'];
    const options = {
      timeout: TIMEOUT_MS,
      env: { ...process.env, http_proxy: `http://127.0.0.1:${port}`, no_proxy: '' },
    };
    const args = ['-v', 'quiet', ...format, '-count_packets', '-show_streams', PLAYLIST_URL];
    const { promise, resolve } = Promise.withResolvers<boolean>();
    execFile('ffprobe', args, options, (error) => resolve(error?.killed === true));
    const isKilled = await promise;
    // It refuses playlists with file names that have an extension that it does not know.
    return isKilled || opened.length === 0 ? null : opened;
  }

  /** Returns true where the ranges of a segment have place for what is sent: ffmpeg ends at a piece of a box. */
  #fits(segment: string): boolean {
    const lengths = [...segment.matchAll(/\[\d+, \+(\d+)\]/g)].map(([, length]) => Number(length));
    const [media = Number.POSITIVE_INFINITY, init = Number.POSITIVE_INFINITY] = lengths;
    return media >= this.#film.fragment.length && init >= this.#film.init.length;
  }
}

function makeFilm(): Film {
  const source = '-v error -f lavfi -i sine=r=16000:d=0.2 -c:a aac -ac 1 -b:a 16k'.split(' ');
  const encode = (...format: readonly string[]): Buffer => execFileSync('ffmpeg', [...source, ...format, '-']);
  const movie = encode('-movflags', '+empty_moov+default_base_moof+frag_keyframe', '-f', 'mp4');
  const start = movie.indexOf('moof') - 4;
  const end = movie.indexOf('mfra') - 4;
  return {
    init: movie.subarray(0, start),
    fragment: movie.subarray(start, end),
    stream: encode('-f', 'mpegts'),
  };
}

/** Time at which the last segment of every representation begins, in samples: ffmpeg ends with the first one that ends. */
const LAST_TIME = 160_000;

/** Returns when a segment of an MPD begins, so that those of all representations are asked for. */
function timeOf(part: string, judged: Reading): number {
  if (judged.kind !== 'mpd') return 0;
  for (const { segments } of judged.representations) {
    const index = segments.findIndex((segment) => segment.replace(INIT, '') === part);
    const last = segments.length - 1;
    if (index !== -1) return index === last ? LAST_TIME : Math.round((LAST_TIME * index) / last);
  }
  return 0;
}

/** Returns a fragment that begins at a time. */
function at(fragment: Buffer, time: number): Buffer {
  const moved = Buffer.from(fragment);
  // tfdt: version, flags, time in 64 bits.
  moved.writeBigUInt64BE(BigInt(time), moved.indexOf('tfdt') + 8);
  return moved;
}

/** Returns false for features that ffmpeg does not know, or has no keys for. */
function isKnown(text: string, judged: Reading): boolean {
  if (judged.kind === 'mpd') {
    // It plays one period, takes the first number for an index of a list or timeline, and counts from 0 where there is none.
    const isList =
      /<SegmentList[^>]*\sstartNumber/.test(text) || (/\$Time/.test(text) && /\sstartNumber="[1-9]/.test(text));
    const isCounted = !/\$Number/.test(text) || !/<SegmentTemplate(?![^>]*\sstartNumber=)/.test(text);
    return (text.match(/<Period[\s>]/g) ?? []).length === 1 && !isList && isCounted;
  }
  // Media without an init segment are transport streams here.
  const withInit = segmentsOf(judged).filter((segment) => INIT.test(segment)).length;
  const isOfOneKind = withInit === 0 || withInit === segmentsOf(judged).length;
  return isOfOneKind && !/^#EXT-X-(?:GAP|KEY|DEFINE)\b/m.test(text);
}

const INIT = / after (.*)$/;

function segmentsOf(judged: Reading): readonly string[] {
  if (judged.kind === 'media') return judged.segments;
  return judged.kind === 'mpd' ? judged.representations.flatMap(({ segments }) => segments) : [];
}

function initsOf(judged: Reading): ReadonlySet<string> {
  return new Set(segmentsOf(judged).flatMap((segment) => INIT.exec(segment)?.[1] ?? []));
}

/** Compares what ffmpeg opened with what the judge reads. Returns null where it is the same. */
function differenceOfOpened(opened: readonly string[], judged: Reading): string | null {
  if (judged.kind === 'multivariant') return differenceOfPlaylists(opened, judged);
  if (judged.kind === 'media') return differenceOfLists(pairsOf(opened, initsOf(judged)), judged.segments);
  const known = new Set<string>();
  for (const { segments } of judged.representations) {
    const own = segments.map((segment) => segment.replace(INIT, ''));
    const read = opened.filter((part) => own.includes(part));
    // It does not know some kinds of text and pictures.
    const difference = read.length === 0 ? null : differenceOfLists(read, own);
    if (difference !== null) return difference;
    for (const part of own) known.add(part);
    // It asks for one segment more than fill a period.
    known.add(nextOf(own.at(-1) ?? ''));
  }
  const inits = initsOf(judged);
  const other = opened.find((part) => !known.has(part) && !inits.has(part));
  return other === undefined ? null : `${other}, which the judge does not read`;
}

/** Returns the name of a file with the number behind its own. */
function nextOf(part: string): string {
  return part.replace(/\d+(?=[^\d.]*\.[^.]*$)/, (number) => String(Number(number) + 1).padStart(number.length, '0'));
}

/** Returns segments with the init segments that were opened before them. */
function pairsOf(opened: readonly string[], inits: ReadonlySet<string>): string[] {
  const pairs: string[] = [];
  let init: string | undefined;
  for (const part of opened) {
    if (inits.has(part)) init = part;
    else pairs.push(init === undefined ? part : `${part} after ${init}`);
  }
  return pairs;
}

/** Variants, and the sound and pictures that have a playlist of their own; it does not know subtitles. */
function differenceOfPlaylists(opened: readonly string[], judged: Reading & { kind: 'multivariant' }): string | null {
  const renditions = judged.renditions.flatMap((rendition) => {
    const [type = '', , ...path] = rendition.split(' ');
    return type === 'SUBTITLES' ? [] : [path.join(' ')];
  });
  const own = new Set([...judged.variants, ...renditions]);
  return differenceOfLists([...new Set(opened)].sort(), [...own].sort());
}

function differenceOfLists(read: readonly string[], own: readonly string[]): string | null {
  const at = read.findIndex((part, index) => part !== own[index]);
  if (at === -1 && read.length === own.length) return null;
  const index = at === -1 ? read.length : at;
  return `${read[index] ?? 'nothing'} where the judge reads ${own[index] ?? 'nothing'} (${index} of ${own.length})`;
}
