import { type Attributes, TAGS, type Tag, TEXT } from './hls-tags.ts';

/** A finding about one line of a playlist. Lines count from one. */
export interface PlaylistFinding {
  readonly line: number;
  /**
   * `ambiguous`: players may read it differently; `unsigned`: it leads players to media that nobody signed; `unknown`: a name
   * outside the table, which changes nothing that known players play.
   */
  readonly kind: 'ambiguous' | 'unsigned' | 'unknown';
  /** The problem as the end of a sentence; of an unknown name, the name. */
  readonly problem: string;
}

const TAG_LINE = /^#(EXT[A-Z0-9-]*)(?::(.*))?$/;
/** A character at which some players end a line, or that is no text; a tab is white space to all. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const LINE_END = /[\u0000-\u0008\u000a-\u001f\u007f\u0085\u2028\u2029]/;
/** A character at which some players end a line, or that some take for white space. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
export const ODD_CHARACTER = /[\u0000-\u001f\u007f\u0085\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000\ufeff]/;
/** Text for people, which no player takes for an address: comments, titles of segments, and quoted values but for addresses. */
const TEXT_FOR_PEOPLE = /^#(?!\s*EXT).*|(?<=^#EXTINF:[^,]*,).*|(?<!URI=|^#EXT-X-DEFINE:.*)"[^"]*"/gi;
/** Text that players whose patterns are not tied to lines take for a tag, wherever it stands. */
const HIDDEN_TAG = /.#\s*EXT/i;
/** Text that may be an address. */
const ADDRESS = /:\/\/|^"?(?:\.{0,2}\/|data:|blob:)|\.(?:m3u8?|mpd|mp4|m4[sva]|cmf[vat]|ts|aac|mp3|webm|vtt)\b/i;

/**
 * Tags by which players leave out segments or play others than those of the playlist: updates of a playlist that they know
 * already, and segments that are to come.
 */
const UPDATE_TAGS: ReadonlySet<string> = new Set(['EXT-X-SKIP', 'EXT-X-PREFETCH', 'EXT-X-PART', 'EXT-X-PRELOAD-HINT']);

/** Tags that players know by the beginning of their line, so that they take longer names for them. */
const KNOWN_BY_BEGINNING = [...TAGS].filter(([, { value }]) => value !== TEXT).map(([name]) => name);

/** A line that is a tag. */
interface TagLine {
  readonly name: string;
  readonly value: string | undefined;
}

/**
 * Finds the lines of an HLS playlist that are not in the strict grammar of RFC 8216bis, or that players read differently,
 * and names outside the table.
 */
export function checkHlsGrammar(text: string): PlaylistFinding[] {
  const findings: PlaylistFinding[] = [];
  const order = new LineOrder();
  const lines = text.split('\n');
  for (const [index, ended] of lines.entries()) {
    const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
    if (index === 0 && line !== '#EXTM3U') {
      findings.push({ line: 1, kind: 'ambiguous', problem: 'the first line is not #EXTM3U' });
    }
    if (line !== '') findings.push(...[...findingsOfLine(line, order)].map((found) => ({ line: index + 1, ...found })));
  }
  return [...findings, ...[...order.atEnd()].map((found) => ({ line: lines.length, ...found }))];
}

function* findingsOfLine(line: string, order: LineOrder): Generator<Found> {
  const problem = problemOfLine(line);
  if (problem !== null) yield { kind: 'ambiguous', problem };
  const [, name, value] = TAG_LINE.exec(line) ?? [];
  if (name !== undefined) {
    yield* order.afterTag({ name, value });
    yield* findingsOfTag({ name, value });
  } else if (/^#\s*EXT/i.test(line)) yield { kind: 'ambiguous', problem: 'it is nearly a tag' };
  else if (!line.startsWith('#')) {
    yield* order.afterAddress();
    yield* findingsOfAddress(line);
  }
}

function problemOfLine(line: string): string | null {
  const forPlayers = line.replace(TEXT_FOR_PEOPLE, '');
  if (LINE_END.test(line) || ODD_CHARACTER.test(forPlayers)) {
    return 'a character in it ends the line, or is white space, for some players';
  }
  if (forPlayers !== forPlayers.trim()) return 'white space stands around it, which some players take as a part of it';
  return HIDDEN_TAG.test(line) ? 'a tag does not stand at the start of its line' : null;
}

/** Finds what players resolve differently in an address (RFC 3986). */
function* findingsOfAddress(address: string): Generator<Found> {
  const references = address.match(VARIABLE) ?? [];
  if (/[{}\\]/.test(address.replace(VARIABLE, ''))) {
    yield { kind: 'ambiguous', problem: 'an address has a brace or a backslash, which players read differently' };
  }
  if (new Set(references).size < references.length) {
    yield {
      kind: 'ambiguous',
      problem: 'a variable stands twice in an address, and some players replace the first one',
    };
  }
  if (/%(?:2f|5c|00|7b\$)/i.test(address)) {
    yield { kind: 'ambiguous', problem: 'an address with an encoded slash or brace, which is read differently' };
  }
  if (/^[;?#]|\/$/.test(address)) {
    yield { kind: 'ambiguous', problem: 'an address without a file, which players resolve differently' };
  }
}

/** A reference to a variable (RFC 8216bis §4.3); some players replace none with a hyphen in its name. */
const VARIABLE = /\{\$\w+\}/g;

/** Follows the order of the lines: the tags that stand above addresses, and what stands in the file once. */
class LineOrder {
  /** The tags since the last address that are about the next one. */
  readonly #pending = new Set<string>();
  readonly #kinds = new Set<Tag['in']>();
  readonly #once = new Set<string>();
  /** Groups of sound and pictures, and those that variants name, as `kind=id`. */
  readonly #groups = new Set<string>();
  readonly #named = new Set<string>();
  #hasSegments = false;
  #hasMap = false;
  /** True behind a key frame without an init segment: some players make one of it, and keep it. */
  #hasBareSegments = false;

  *afterTag({ name, value }: TagLine): Generator<Found> {
    if (this.#pending.has('EXT-X-STREAM-INF')) {
      yield { kind: 'ambiguous', problem: 'a tag stands between #EXT-X-STREAM-INF and its address' };
    }
    if (ABOUT_ADDRESS.has(name) && this.#pending.has(name)) {
      yield { kind: 'ambiguous', problem: `#${name} stands twice above one address` };
    }
    if (name === 'EXT-X-MAP' && this.#hasBareSegments) {
      yield { kind: 'ambiguous', problem: 'a key frame stands above the first #EXT-X-MAP' };
    }
    if (name === 'EXT-X-MAP') this.#hasMap = true;
    if (HEADER.has(name) && this.#hasSegments) {
      yield { kind: 'ambiguous', problem: `#${name} stands behind the first segment or its init segment` };
    }
    if (name === 'EXTINF' || name === 'EXT-X-MAP' || name === 'EXT-X-DISCONTINUITY') this.#hasSegments = true;
    if (ABOUT_ADDRESS.has(name)) this.#pending.add(name);
    if (name === 'EXT-X-MAP' && [...ABOUT_ADDRESS].some((each) => this.#pending.has(each))) {
      yield {
        kind: 'ambiguous',
        problem: '#EXT-X-MAP stands between an address and its tags, which some players give to it',
      };
    }
    const tag = TAGS.get(name);
    if (tag !== undefined && tag.in !== 'any') this.#kinds.add(tag.in);
    if (this.#kinds.size > 1) {
      yield { kind: 'ambiguous', problem: 'tags of a multivariant and of a media playlist stand in one file' };
      this.#kinds.clear();
    }
    const attributes = attributesOf(value ?? '') ?? new Map<string, string>();
    if (name === 'EXT-X-MEDIA') this.#groups.add(`${attributes.get('TYPE')}=${attributes.get('GROUP-ID')}`);
    else if (name === 'EXT-X-STREAM-INF') {
      for (const kind of ['AUDIO', 'VIDEO']) this.#named.add(`${kind}=${attributes.get(kind)}`);
    }
    const key = keyOf(name, attributes);
    if (key !== null && this.#once.has(key)) yield { kind: 'ambiguous', problem: `#${name} stands there twice` };
    if (key !== null) this.#once.add(key);
  }

  *afterAddress(): Generator<Found> {
    const needed = this.#kinds.has('multivariant') ? 'EXT-X-STREAM-INF' : 'EXTINF';
    if (!this.#pending.has(needed)) {
      yield { kind: 'ambiguous', problem: `an address without #${needed}, which some players pass over` };
    }
    this.#hasBareSegments ||= !this.#hasMap && this.#once.has('EXT-X-I-FRAMES-ONLY');
    this.#pending.clear();
  }

  *atEnd(): Generator<Found> {
    for (const name of this.#pending) yield { kind: 'ambiguous', problem: `#${name} without an address` };
    for (const named of this.#named) {
      const ofOtherKind = named.replace(/^[A-Z]+/, (kind) => (kind === 'AUDIO' ? 'VIDEO' : 'AUDIO'));
      if (this.#groups.has(ofOtherKind)) {
        yield { kind: 'ambiguous', problem: `${ofOtherKind} is a group too, which some players take for ${named}` };
      }
    }
  }
}

/** Tags about the next address alone, of which it has one each. */
const ABOUT_ADDRESS: ReadonlySet<string> = new Set([
  'EXTINF',
  'EXT-X-BYTERANGE',
  'EXT-X-GAP',
  'EXT-X-BITRATE',
  'EXT-X-STREAM-INF',
]);

/** Tags about all segments, which stand above the first one. */
const HEADER: ReadonlySet<string> = new Set([
  'EXT-X-DEFINE',
  'EXT-X-MEDIA-SEQUENCE',
  'EXT-X-DISCONTINUITY-SEQUENCE',
  'EXT-X-I-FRAMES-ONLY',
]);

/** Returns what tells a tag from others of its name that may stand beside it; null where any number may. */
function keyOf(name: string, attributes: ReadonlyMap<string, string>): string | null {
  if (name === 'EXT-X-DEFINE') return `${name} ${attributes.get('NAME')}`;
  if (name === 'EXT-X-MEDIA') {
    return [name, attributes.get('TYPE'), attributes.get('GROUP-ID'), attributes.get('NAME')].join(' ');
  }
  return ONCE.has(name) ? name : null;
}

/** Tags that stand in a playlist once (RFC 8216bis §4.4). */
const ONCE: ReadonlySet<string> = new Set([
  'EXTM3U',
  'EXT-X-VERSION',
  'EXT-X-TARGETDURATION',
  'EXT-X-MEDIA-SEQUENCE',
  'EXT-X-DISCONTINUITY-SEQUENCE',
  'EXT-X-PLAYLIST-TYPE',
  'EXT-X-I-FRAMES-ONLY',
  'EXT-X-ENDLIST',
  'EXT-X-START',
  'EXT-X-INDEPENDENT-SEGMENTS',
]);

type Found = Omit<PlaylistFinding, 'line'>;

function* findingsOfTag({ name, value }: TagLine): Generator<Found> {
  const tag = TAGS.get(name);
  if (tag === undefined) yield findingOfUnknownTag({ name, value });
  else if (tag.value === null || typeof tag.value === 'string') yield* findingsOfText({ name, value }, tag.value);
  else yield* findingsOfAttributes({ name, value }, tag.value, tag.required);
}

function findingOfUnknownTag({ name, value }: TagLine): Found {
  if (UPDATE_TAGS.has(name)) return { kind: 'ambiguous', problem: `#${name} has some players leave out segments` };
  const known = KNOWN_BY_BEGINNING.find((each) => name.startsWith(each));
  if (known !== undefined) {
    return { kind: 'ambiguous', problem: `#${name} begins like #${known}, which some players take it for` };
  }
  return { kind: value !== undefined && ADDRESS.test(value) ? 'unsigned' : 'unknown', problem: `#${name}` };
}

function* findingsOfText({ name, value }: TagLine, grammar: string | null): Generator<Found> {
  const isOptional = grammar === null || grammar === TEXT;
  const isFit = value === undefined ? isOptional : grammar !== null && new RegExp(`^(?:${grammar})$`).test(value);
  if (!isFit) yield { kind: 'ambiguous', problem: `#${name} has another value than it can have` };
  if (name === 'EXTINF' && Number.parseFloat(value ?? '') === 0) {
    yield { kind: 'ambiguous', problem: 'a duration of zero, which some players skip' };
  }
}

function* findingsOfAttributes(
  { name, value }: TagLine,
  grammar: Attributes,
  required: readonly string[],
): Generator<Found> {
  const attributes = attributesOf(value ?? '');
  if (attributes === null) {
    yield { kind: 'ambiguous', problem: `the attributes of #${name} are not well-formed, or one stands there twice` };
    return;
  }
  for (const [attribute, text] of attributes) {
    const known = grammar[attribute];
    if (known !== undefined) {
      if (!new RegExp(`^(?:${known})$`).test(text)) {
        yield { kind: 'ambiguous', problem: `${attribute} of #${name} has another value than it can have` };
      }
    } else if (/^X-ASSET-(?:URI|LIST)$/.test(attribute) || ADDRESS.test(text)) {
      yield { kind: 'unsigned', problem: `${attribute} of #${name} leads to media that nobody signed` };
    } else if (/UR[IL]/.test(attribute)) {
      yield { kind: 'ambiguous', problem: `#${name} has no ${attribute}` };
    } else if (!(name === 'EXT-X-DATERANGE' && attribute.startsWith('X-'))) {
      yield { kind: 'unknown', problem: `${attribute} of #${name}` };
    }
  }
  for (const attribute of required) {
    if (!attributes.has(attribute)) yield { kind: 'ambiguous', problem: `#${name} without ${attribute}` };
  }
  const uri = attributes.get('URI');
  if (uri !== undefined && LEADS_TO_MEDIA.has(name)) yield* findingsOfAddress(uri.slice(1, -1));
  yield* effectsOf(name, attributes);
}

/** Tags whose URI is that of media, or of a playlist of media. */
const LEADS_TO_MEDIA: ReadonlySet<string> = new Set([
  'EXT-X-MAP',
  'EXT-X-MEDIA',
  'EXT-X-I-FRAME-STREAM-INF',
  'EXT-X-IMAGE-STREAM-INF',
]);

/** Seconds that EXT-X-START may cut. */
const MAX_START_SECONDS = 0.1;

/** Finds what well-formed tags make players do beside playing the segments of the playlist. */
function* effectsOf(name: string, attributes: ReadonlyMap<string, string>): Generator<Found> {
  if (name === 'EXT-X-CONTENT-STEERING') {
    yield { kind: 'unsigned', problem: '#EXT-X-CONTENT-STEERING has a server choose what plays' };
  }
  if (name === 'EXT-X-DEFINE' && !attributes.has('NAME')) {
    yield { kind: 'ambiguous', problem: 'a variable is defined outside the playlist' };
  }
  if (name === 'EXT-X-START' && Math.abs(Number(attributes.get('TIME-OFFSET') ?? 0)) > MAX_START_SECONDS) {
    yield { kind: 'ambiguous', problem: '#EXT-X-START has some players begin elsewhere' };
  }
}

/** Returns the attributes of a list, quotes kept; null where it is not one, or has an attribute twice. */
function attributesOf(list: string): Map<string, string> | null {
  const attributes = new Map<string, string>();
  const pattern = /(?:^|,)([A-Z0-9-]+)=("[^"]*"|[^",\s]+)(?=,|$)/gy;
  let end = 0;
  for (let match = pattern.exec(list); match !== null; match = pattern.exec(list)) {
    const [, name = '', value = ''] = match;
    if (attributes.has(name)) return null;
    attributes.set(name, value);
    end = pattern.lastIndex;
  }
  return end === list.length && attributes.size > 0 ? attributes : null;
}
