/**
 * @typedef {import('./c2pa-boxes.js').Bound} Bound
 * @typedef {import('./reader.js').Reading} Reading
 *
 * @typedef {{ url: string, start: number | null, end: number | null }} Part a file, or a range of its bytes; the end is not in it
 *
 * @typedef {object} Fragment
 * @property {number} index position in its playlist, counted from zero
 * @property {number} start in seconds of the programme
 * @property {number} duration in seconds
 * @property {Part} part
 * @property {Part | null} init null for a segment that has none: no manifest binds it
 * @property {number} sizeBytes 0 before it is loaded
 * @property {Bound | null} bound null where it is not intact
 * @property {Reading | null} alone without regard to its position; null before it is verified
 * @property {Reading | null} reading with regard to its position among those that are verified
 *
 * @typedef {{ key: string, kind: 'video' | 'audio' | 'text', name: string, base: string, fragments: Fragment[] }} Rendition `base` is the address that its playlist was answered from
 */

const KEY_TAG = /^#EXT-X-(?:SESSION-)?KEY:/;
/** Texts in quotes that may be addresses: those of attributes for addresses, and names of files. The service tries all texts in quotes. */
const ADDRESS = /[:,]\s*[A-Z0-9-]*(?:UR[IL]|ASSET-LIST)="([^"]*)"|"([^",:]+\.\w+)"/g;
/** The tags that lead to playlists of key frames and of pictures, which do not play: they are compared. */
const BESIDE = /^#EXT-X-(?:I-FRAME|IMAGE)-STREAM-INF:.*[:,]\s*URI="([^"]*)"/gm;
/** A variable that a playlist defines, and the attributes that do it. */
const VARIABLE = /\{\$([\w-]+)\}/g;
const DEFINITION = /^#EXT-X-DEFINE(?=.*[:,]NAME="([^"]*)")(?=.*[:,]VALUE="([^"]*)")/;

/**
 * Reads the playlists of a publication, all renditions of video, audio and subtitles, and of the last those in fragments. Throws an
 * Error where the main one cannot be read; `problem` says why another cannot, whose rendition is left out. Playlists of key frames and of pictures are loaded, too.
 * @param {{ parser: any, take: (asked: string, answered: string, bytes: ArrayBuffer) => string, lose: (asked: string) => void }} reader the
 * parser of the player's library; `take` gets every playlist that a player loads, and returns its text; `lose` gets those that are not there
 * @param {string} address of the main playlist
 * @param {AbortSignal} signal
 * @returns {Promise<{ renditions: Rendition[], problem: string }>}
 */
export async function readPlaylists({ parser, take, lose }, address, signal) {
  const load = async (/** @type {string} */ url) => {
    const response = await fetch(url, { signal });
    if (response.status === 404) lose(url);
    if (!response.ok)
      throw new Error(`A playlist cannot be loaded: the service answered with status ${response.status}.`);
    return { text: take(url, response.url, await response.arrayBuffer()), base: response.url };
  };
  const { text, base } = await load(address);
  if (parser.isMediaPlaylist(text)) {
    const programme = { url: address, kind: 'video', name: 'Programme' };
    return { renditions: [renditionOf(parser, { text, base }, programme)], problem: '' };
  }
  const main = parser.parseMasterPlaylist(text, base);
  const { AUDIO = [], SUBTITLES = [] } = parser.parseMasterPlaylistMedia(text, base, main);
  const listed = [
    ...main.levels.map((/** @type {any} */ level, /** @type {number} */ index) => ({
      url: level.url,
      kind: level.height || level.videoCodec ? 'video' : 'audio',
      name: videoName(level, index),
    })),
    ...tracksOf('audio', 'Audio', AUDIO),
    ...tracksOf('text', 'Subtitles', SUBTITLES),
  ];
  const unique = [...new Map(listed.filter(({ url }) => url).map((entry) => [entry.url, entry])).values()];
  const beside = Array.from(text.matchAll(BESIDE), ([, uri = '']) => URL.parse(uri, base)?.href ?? base);
  const [read] = await Promise.all([
    Promise.allSettled(unique.map(async (entry) => renditionOf(parser, await load(entry.url), entry))),
    Promise.allSettled([...new Set(beside)].map(load)),
  ]);
  const renditions = read.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const problems = read.flatMap((each) => (each.status === 'rejected' ? [each.reason.message] : []));
  return {
    renditions: renditions.filter(({ kind, fragments }) => kind !== 'text' || fragments.length > 0),
    problem: problems[0] ?? '',
  };
}

/**
 * @param {any} parser
 * @param {{ text: string, base: string }} playlist
 * @param {{ url: string, kind: any, name: string }} entry
 * @returns {Rendition}
 */
function renditionOf(parser, { text, base }, { url, kind, name }) {
  const { fragments, playlistParsingError } = parser.parseLevelPlaylist(text, base, 0, 'main', 0, null);
  if (playlistParsingError) throw new Error(`A playlist cannot be read: ${playlistParsingError.message}`);
  // Plain text is a file that a playlist names.
  const shown = fragments.filter((/** @type {any} */ { initSegment }) => initSegment || kind !== 'text');
  return { key: url, kind, name, base, fragments: shown.map(fragmentOf) };
}

/**
 * Returns a fragment that is not verified yet.
 * @param {any} fragment of the player's library
 * @param {number} index
 * @returns {Fragment}
 */
export function fragmentOf(fragment, index) {
  const { start, duration, initSegment } = fragment;
  return {
    index,
    start,
    duration,
    part: partOf(fragment),
    init: initSegment ? partOf(initSegment) : null,
    sizeBytes: 0,
    bound: null,
    alone: null,
    reading: null,
  };
}

/**
 * Returns the part that a fragment of the player's library is.
 * @param {any} fragment
 * @returns {Part}
 */
export function partOf({ url, byteRangeStartOffset: start = null, byteRangeEndOffset: end = null }) {
  return { url, start, end: start === null ? null : end };
}

/** Bytes of a fragment that its Merkle box lies in. */
const HEAD_SIZE_BYTES = 64 * 1024;

/**
 * Returns the beginning of a fragment, with its Merkle box.
 * @param {Part} fragment
 * @returns {Part}
 */
export function headOf({ url, start, end }) {
  const head = (start ?? 0) + HEAD_SIZE_BYTES;
  return { url, start: start ?? 0, end: end === null ? head : Math.min(end, head) };
}

/**
 * Names a part, so that a loaded fragment finds its entry.
 * @param {Part} part
 */
export function keyOf({ url, start, end }) {
  return `${url} ${start ?? ''} ${end ?? ''}`;
}

/**
 * Fetches a part; null where its file is not there.
 * @param {Part} part
 * @param {AbortSignal} signal
 */
export async function fetchIfThere({ url, start, end }, signal) {
  const headers = start === null || end === null ? {} : { Range: `bytes=${start}-${end - 1}` };
  const response = await fetch(url, { signal, headers });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`the service answered with status ${response.status}`);
  return await response.blob();
}

/**
 * Returns the addresses that an HLS playlist names, each once, without those of keys, and with its variables written out.
 * @param {string} text
 * @param {string} base
 */
export function addressesIn(text, base) {
  /** @type {Map<string, string>} */
  const variables = new Map();
  const named = text.split('\n').flatMap((raw) => {
    const line = raw.trim().replace(VARIABLE, (reference, name) => variables.get(name) ?? reference);
    const [, name, value = ''] = DEFINITION.exec(line) ?? [];
    if (name !== undefined) variables.set(name, value);
    if (line === '' || KEY_TAG.test(line) || /^#(?!EXT)/.test(line)) return [];
    return line.startsWith('#')
      ? Array.from(line.matchAll(ADDRESS), ([, stated, named = '']) => stated ?? named)
      : [line];
  });
  return [...new Set(named.flatMap((address) => URL.parse(address, base)?.href ?? []))];
}

/** @param {any} level @param {number} index */
function videoName({ height, bitrate, name }, index) {
  if (height) return `Video ${height}p${bitrate ? `, ${rateText(bitrate)}` : ''}`;
  return name || (bitrate ? `Rendition ${rateText(bitrate)}` : `Rendition ${index + 1}`);
}

/** @param {number} bitrate */
export function rateText(bitrate) {
  return bitrate < 1_000_000 ? `${Math.round(bitrate / 1000)} kbit/s` : `${(bitrate / 1_000_000).toFixed(1)} Mbit/s`;
}

/** @param {string} kind @param {string} word @param {any[]} tracks */
function tracksOf(kind, word, tracks) {
  const names = trackNames(tracks);
  return tracks.map(({ url }, index) => ({ url, kind, name: `${word} ${names[index]}` }));
}

/**
 * Returns the names of tracks: their languages, with the names in the playlist where tracks of a language have several.
 * @param {{ name?: string, lang?: string }[]} tracks
 */
export function trackNames(tracks) {
  const ofLanguage = Map.groupBy(tracks, ({ lang = '' }) => languageName(lang));
  return tracks.map(({ name = '', lang = '' }) => {
    const language = languageName(lang);
    const isOnly = ofLanguage.get(language)?.every((other) => (other.name ?? '') === name);
    return language === '' || isOnly || name === language ? language || name : `${language} (${name})`;
  });
}

/**
 * Returns a language by its English name.
 * @param {string} code
 */
function languageName(code) {
  if (code === '' || code === 'und') return '';
  try {
    return new Intl.DisplayNames('en', { type: 'language' }).of(code) ?? code;
  } catch {
    // It is no language tag.
    return code;
  }
}
