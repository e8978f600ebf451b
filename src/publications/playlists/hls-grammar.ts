import type { HlsLine } from './hls-lines.ts';
import { TAGS, type Tag } from './hls-tags.ts';
import { ADDRESS, ODD_ADDRESS, ODD_CHARACTER, type PlaylistFinding } from './playlist-finding.ts';

/** A character at which some players end a line, or that is no text; a tab is white space to all. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const LINE_END = /[\u0000-\u0008\u000a-\u001f\u007f\u0085\u2028\u2029]/;
/**
 * Text for people, which no player takes for an address: comments, titles of segments, and quoted values. Addresses and variables,
 * which are quoted too, are captured.
 */
const TEXT_FOR_PEOPLE = /^#(?!\s*EXT).*|(?<=^#EXTINF:[^,]*,).*|(URI="[^"]*"|^#EXT-X-DEFINE:.*)|"[^"]*"/gi;
/** Text that players whose patterns are not tied to lines take for a tag, wherever it stands. */
const HIDDEN_TAG = /.#\s*EXT/i;

/**
 * Tags by which players leave out segments or play others than those of the playlist: updates of a playlist that they know
 * already, and segments that are to come.
 */
const UPDATE_TAGS: ReadonlySet<string> = new Set(['EXT-X-SKIP', 'EXT-X-PREFETCH', 'EXT-X-PART', 'EXT-X-PRELOAD-HINT']);

/** Tags that players know by the beginning of their line, so that they take longer names for them. */
const KNOWN_BY_BEGINNING = [...TAGS].filter(([, { value }]) => !isAnyText(value)).map(([name]) => name);

function isAnyText(value: Tag['value']): boolean {
  return value instanceof RegExp && value.test('');
}

type FoundInLine = Omit<PlaylistFinding, 'playlist' | 'line'>;

/**
 * Finds what of the next line of an HLS playlist is not in the strict grammar of RFC 8216bis, what players read differently, and names
 * outside the table. `ended` is the line as it stands in the file, `read` what was read of it.
 */
export function* findingsOfLine(ended: string, read: HlsLine | null, order: LineOrder): Generator<FoundInLine> {
  const written = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
  if (written === '') return;
  yield* asAmbiguous(problemsOfText(written));
  if (read !== null && mayBeCut(read, written))
    yield ambiguous(`it has more than ${MAX_LINE_BYTES} bytes, and some players cut it`);
  if (read !== null && isTag(read)) {
    yield* asAmbiguous(order.afterTag(read));
    yield* findingsOfTag(read);
  } else if (/^\s*#\s*EXT/i.test(written)) yield ambiguous('it is nearly a tag');
  else if (read !== null) {
    yield* asAmbiguous(order.afterAddress());
    yield* asAmbiguous(problemsOfAddress(read.text));
  }
}

/** A line that is a tag. */
type TagLine = HlsLine & { readonly name: string };

function isTag(read: HlsLine): read is TagLine {
  return read.name !== null && /^EXT[A-Z0-9-]*$/.test(read.name);
}

/** Bytes of a line that all players read. */
const MAX_LINE_BYTES = 4_095;

/** Returns true for a line that leads to media, and is longer than some players read. */
function mayBeCut({ name }: HlsLine, written: string): boolean {
  const leadsToMedia =
    name === null || LEADS_TO_MEDIA.has(name) || name === 'EXT-X-STREAM-INF' || name === 'EXT-X-DEFINE';
  return leadsToMedia && Buffer.byteLength(written) > MAX_LINE_BYTES;
}

function* problemsOfText(line: string): Generator<string> {
  const forPlayers = line.replace(TEXT_FOR_PEOPLE, '$1');
  if (LINE_END.test(line) || ODD_CHARACTER.test(forPlayers)) {
    yield 'a character in it ends the line, or is white space, for some players';
  } else if (forPlayers !== forPlayers.trim()) {
    yield 'white space stands around it, which some players take as a part of it';
  } else if (HIDDEN_TAG.test(line)) yield 'a tag does not stand at the start of its line';
  if (/^#EXT(?!INF:).*\\"/.test(line))
    yield 'a backslash before a quote, which some players take for a part of the text';
  if (/^#EXT(?!-X-DEFINE:)/.test(line) && line.replace(/URI="[^"]*"/g, '').includes('{$')) {
    yield 'a variable stands outside of an address, where some players replace none';
  }
}

/** Finds what players resolve differently in an address (RFC 3986). */
function* problemsOfAddress(address: string): Generator<string> {
  const references = address.match(VARIABLE) ?? [];
  if (/[{}]/.test(address.replace(VARIABLE, ''))) yield 'an address has a brace, which players read differently';
  if (new Set(references).size < references.length) {
    yield 'a variable stands twice in an address, and some players replace the first one';
  }
  if (ODD_ADDRESS.test(address) || /%7b\$/i.test(address)) yield 'an address that players and servers read differently';
  if (/^[;?#]|\/$/.test(address)) yield 'an address without a file, which players resolve differently';
}

/** A reference to a variable (RFC 8216bis §4.3); some players replace none with a hyphen in its name. */
const VARIABLE = /\{\$\w+\}/g;

/** Follows the order of the lines: the tags that stand above addresses, and what stands in the file once. */
export class LineOrder {
  /** The tags since the last address that are about the next one. */
  readonly #pending = new Set<string>();
  readonly #kinds = new Set<Tag['in']>();
  readonly #once = new Set<string>();
  /** Groups of sound and pictures, and those that variants name, as `kind=id`. */
  readonly #groups = new Set<string>();
  readonly #named = new Set<string>();
  #hasSegments = false;
  #hasMap = false;
  #hasDate = false;
  /** True behind a key frame without an init segment: some players make one of it, and keep it. */
  #hasBareSegments = false;

  *afterTag({ name, attributes }: TagLine): Generator<string> {
    if (this.#pending.has('EXT-X-STREAM-INF')) yield 'a tag stands between #EXT-X-STREAM-INF and its address';
    const isAboutAddress = ABOUT_ADDRESS.has(name);
    if (isAboutAddress && this.#pending.has(name)) yield `#${name} stands twice above one address`;
    if (name === 'EXT-X-PROGRAM-DATE-TIME') {
      if (this.#hasDate) yield `#${name} stands twice above one address`;
      this.#hasDate = true;
    }
    if (name === 'EXT-X-MAP') {
      if (this.#hasBareSegments) yield 'a key frame stands above the first #EXT-X-MAP';
      this.#hasMap = true;
    }
    if (HEADER.has(name) && this.#hasSegments) yield `#${name} stands behind the first segment or its init segment`;
    if (name === 'EXTINF' || name === 'EXT-X-MAP' || name === 'EXT-X-DISCONTINUITY') this.#hasSegments = true;
    if (isAboutAddress) this.#pending.add(name);
    if (name === 'EXT-X-MAP' && this.#pending.size > 0) {
      yield '#EXT-X-MAP stands between an address and its tags, which some players give to it';
    }
    const place = TAGS.get(name)?.in ?? 'any';
    if (place !== 'any') this.#kinds.add(place);
    if (this.#kinds.size > 1) {
      yield 'tags of a multivariant and of a media playlist stand in one file';
      this.#kinds.clear();
    }
    if (name === 'EXT-X-MEDIA') this.#groups.add(`${attributes.get('TYPE')}=${attributes.get('GROUP-ID')}`);
    else if (name === 'EXT-X-STREAM-INF') {
      for (const kind of ['AUDIO', 'VIDEO']) this.#named.add(`${kind}=${attributes.get(kind)}`);
    }
    const key = keyOf(name, attributes);
    if (key !== null && this.#once.has(key)) yield `#${name} stands there twice`;
    if (key !== null) this.#once.add(key);
  }

  *afterAddress(): Generator<string> {
    if (this.#once.has('EXT-X-ENDLIST')) yield 'an address behind #EXT-X-ENDLIST, which some players then pass over';
    const needed = this.#kinds.has('multivariant') ? 'EXT-X-STREAM-INF' : 'EXTINF';
    if (!this.#pending.has(needed)) yield `an address without #${needed}, which some players pass over`;
    this.#hasBareSegments ||= !this.#hasMap && this.#once.has('EXT-X-I-FRAMES-ONLY');
    this.#pending.clear();
    this.#hasDate = false;
  }

  *atEnd(): Generator<FoundInLine> {
    for (const name of this.#pending) yield ambiguous(`#${name} without an address`);
    for (const named of this.#named) {
      const ofOtherKind = named.replace(/^[A-Z]+/, (kind) => (kind === 'AUDIO' ? 'VIDEO' : 'AUDIO'));
      if (this.#groups.has(ofOtherKind))
        yield ambiguous(`${ofOtherKind} is a group too, which some players take for ${named}`);
    }
  }
}

/** Tags about the next address alone, of which it has one each. */
const ABOUT_ADDRESS: ReadonlySet<string> = new Set(['EXTINF', 'EXT-X-BYTERANGE', 'EXT-X-GAP', 'EXT-X-STREAM-INF']);

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

function* findingsOfTag(tag: TagLine): Generator<FoundInLine> {
  const { name, value } = tag;
  const known = TAGS.get(name);
  if (known === undefined) yield findingOfUnknownTag(tag);
  else if (known.value !== null && !(known.value instanceof RegExp)) {
    yield* findingsOfAttributes(tag, known.value, known.required);
  } else {
    const isFit = value === null ? known.value === null || isAnyText(known.value) : known.value?.test(value) === true;
    if (!isFit) yield ambiguous(`#${name} has another value than it can have`);
    if (name === 'EXTINF' && Number.parseFloat(value ?? '') === 0) {
      yield ambiguous('a duration of zero, which some players skip');
    }
  }
}

function* asAmbiguous(problems: Iterable<string>): Generator<FoundInLine> {
  for (const problem of problems) yield ambiguous(problem);
}

function ambiguous(problem: string): FoundInLine {
  return { kind: 'ambiguous', problem };
}

function findingOfUnknownTag({ name, value }: TagLine): FoundInLine {
  if (UPDATE_TAGS.has(name)) return ambiguous(`#${name} has some players leave out segments`);
  const known = KNOWN_BY_BEGINNING.find((each) => name.startsWith(each));
  if (known !== undefined) return ambiguous(`#${name} begins like #${known}, which some players take it for`);
  return { kind: ADDRESS.test(value ?? '') ? 'unsigned' : 'unknown', problem: `#${name}` };
}

function* findingsOfAttributes(
  { name, attributes, isList }: TagLine,
  grammar: ReadonlyMap<string, RegExp>,
  required: readonly string[],
): Generator<FoundInLine> {
  if (!isList) {
    yield ambiguous(`the attributes of #${name} are not well-formed, or one stands there twice`);
    return;
  }
  for (const [attribute, text] of attributes) {
    const known = grammar.get(attribute);
    if (known !== undefined) {
      if (!known.test(text)) yield ambiguous(`${attribute} of #${name} has another value than it can have`);
    } else if (/^X-ASSET-(?:URI|LIST)$/.test(attribute) || ADDRESS.test(text)) {
      yield { kind: 'unsigned', problem: `${attribute} of #${name} leads to media that nobody signed` };
    } else if (/UR[IL]/.test(attribute)) {
      yield ambiguous(`#${name} has no ${attribute}`);
    } else if (!(name === 'EXT-X-DATERANGE' && attribute.startsWith('X-'))) {
      yield { kind: 'unknown', problem: `${attribute} of #${name}` };
    }
  }
  for (const attribute of required) {
    if (!attributes.has(attribute)) yield ambiguous(`#${name} without ${attribute}`);
  }
  const uri = attributes.get('URI');
  const [needsUri, type] =
    name === 'EXT-X-MEDIA' ? [URI_OF_TYPE.get(attributes.get('TYPE') ?? ''), attributes.get('TYPE')] : [];
  if (needsUri !== undefined && needsUri !== (uri !== undefined)) {
    yield ambiguous(`#${name} of TYPE=${type} ${needsUri ? 'without' : 'with a'} URI`);
  }
  if (uri !== undefined && LEADS_TO_MEDIA.has(name)) yield* asAmbiguous(problemsOfAddress(uri.slice(1, -1)));
  if (name === 'EXT-X-CONTENT-STEERING') {
    yield { kind: 'unsigned', problem: '#EXT-X-CONTENT-STEERING has a server choose what plays' };
  }
}

/** Says of which types renditions have a URI, and of which none (RFC 8216bis §4.4.6.1). */
const URI_OF_TYPE: ReadonlyMap<string, boolean> = new Map(
  Object.entries({ SUBTITLES: true, 'CLOSED-CAPTIONS': false }),
);

/** Tags whose URI is that of media, or of a playlist of media. */
const LEADS_TO_MEDIA: ReadonlySet<string> = new Set([
  'EXT-X-MAP',
  'EXT-X-MEDIA',
  'EXT-X-I-FRAME-STREAM-INF',
  'EXT-X-IMAGE-STREAM-INF',
]);
