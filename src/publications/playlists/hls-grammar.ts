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

const QUOTED = '"[^"]*"';
const INTEGER = '\\d{1,20}';
const DECIMAL = '\\d{1,20}(?:\\.\\d{1,20})?';
const SIGNED = `-?${DECIMAL}`;
const HEX = '0[xX][0-9A-Fa-f]+';
const WORD = '[^",\\s]+';
const SIZE = '\\d{1,6}x\\d{1,6}';
const RANGE = '"?\\d{1,15}(?:@\\d{1,15})?"?';

type Attributes = Readonly<Record<string, string>>;

/** Where a tag stands, and its value: nothing, text of a grammar, or attributes with their grammars (RFC 8216bis §4.2). */
interface Tag {
  readonly in: 'any' | 'media' | 'multivariant';
  readonly value: string | Attributes | null;
}

const media = (value: Tag['value'] = null): Tag => ({ in: 'media', value });
const multivariant = (value: Tag['value'] = null): Tag => ({ in: 'multivariant', value });
const any = (value: Tag['value'] = null): Tag => ({ in: 'any', value });

const KEY = { METHOD: WORD, URI: QUOTED, IV: HEX, KEYFORMAT: QUOTED, KEYFORMATVERSIONS: QUOTED, KEYID: HEX };
const STREAM = {
  BANDWIDTH: INTEGER,
  'AVERAGE-BANDWIDTH': INTEGER,
  SCORE: DECIMAL,
  CODECS: QUOTED,
  'SUPPLEMENTAL-CODECS': QUOTED,
  RESOLUTION: SIZE,
  'FRAME-RATE': DECIMAL,
  'HDCP-LEVEL': WORD,
  'ALLOWED-CPC': QUOTED,
  'VIDEO-RANGE': WORD,
  'REQ-VIDEO-LAYOUT': QUOTED,
  'CLOSED-CAPTIONS': `${QUOTED}|NONE`,
  'STABLE-VARIANT-ID': QUOTED,
  VIDEO: QUOTED,
  'PATHWAY-ID': QUOTED,
  'PROGRAM-ID': INTEGER,
  NAME: QUOTED,
};
/** Any text behind the colon of a tag that says nothing of what plays, or none. */
const TEXT = '[^\\r\\n]*';

/** The tags of HLS (RFC 8216bis §4.4), and those of vendors that change nothing that plays. */
const TAGS: ReadonlyMap<string, Tag> = new Map<string, Tag>(
  Object.entries({
    EXTM3U: any(),
    'EXT-X-VERSION': any(INTEGER),
    'EXT-X-INDEPENDENT-SEGMENTS': any(),
    'EXT-X-START': any({ 'TIME-OFFSET': SIGNED, PRECISE: 'YES|NO' }),
    'EXT-X-DEFINE': any({ NAME: QUOTED, VALUE: QUOTED, IMPORT: QUOTED, QUERYPARAM: QUOTED }),
    EXTINF: media(`${DECIMAL}(?:,.*)?`),
    'EXT-X-BYTERANGE': media('\\d{1,15}(?:@\\d{1,15})?'),
    'EXT-X-DISCONTINUITY': media(),
    'EXT-X-KEY': media(KEY),
    'EXT-X-MAP': media({ URI: QUOTED, BYTERANGE: RANGE }),
    'EXT-X-PROGRAM-DATE-TIME': media(
      '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(?:\\.\\d{1,9})?(?:Z|[+-]\\d{2}:?\\d{2})?',
    ),
    'EXT-X-GAP': media(),
    'EXT-X-BITRATE': media(INTEGER),
    'EXT-X-DATERANGE': media({
      ID: QUOTED,
      CLASS: QUOTED,
      'START-DATE': QUOTED,
      CUE: QUOTED,
      'END-DATE': QUOTED,
      DURATION: DECIMAL,
      'PLANNED-DURATION': DECIMAL,
      'SCTE35-CMD': HEX,
      'SCTE35-OUT': HEX,
      'SCTE35-IN': HEX,
      'END-ON-NEXT': 'YES',
    }),
    'EXT-X-TARGETDURATION': media(INTEGER),
    'EXT-X-MEDIA-SEQUENCE': media(INTEGER),
    'EXT-X-DISCONTINUITY-SEQUENCE': media(INTEGER),
    'EXT-X-ENDLIST': media(),
    'EXT-X-PLAYLIST-TYPE': media('EVENT|VOD'),
    'EXT-X-I-FRAMES-ONLY': media(),
    'EXT-X-ALLOW-CACHE': any('YES|NO'),
    'EXT-X-MEDIA': multivariant({
      TYPE: 'AUDIO|VIDEO|SUBTITLES|CLOSED-CAPTIONS',
      URI: QUOTED,
      'GROUP-ID': QUOTED,
      LANGUAGE: QUOTED,
      'ASSOC-LANGUAGE': QUOTED,
      NAME: QUOTED,
      'STABLE-RENDITION-ID': QUOTED,
      DEFAULT: 'YES|NO',
      AUTOSELECT: 'YES|NO',
      FORCED: 'YES|NO',
      'INSTREAM-ID': QUOTED,
      'BIT-DEPTH': INTEGER,
      'SAMPLE-RATE': INTEGER,
      CHARACTERISTICS: QUOTED,
      CHANNELS: QUOTED,
    }),
    'EXT-X-STREAM-INF': multivariant({
      ...STREAM,
      AUDIO: QUOTED,
      SUBTITLES: QUOTED,
    }),
    'EXT-X-I-FRAME-STREAM-INF': multivariant({ ...STREAM, URI: QUOTED }),
    'EXT-X-IMAGE-STREAM-INF': multivariant({ ...STREAM, URI: QUOTED }),
    'EXT-X-SESSION-DATA': multivariant({
      'DATA-ID': QUOTED,
      VALUE: QUOTED,
      URI: QUOTED,
      FORMAT: WORD,
      LANGUAGE: QUOTED,
    }),
    'EXT-X-SESSION-KEY': multivariant(KEY),
    'EXT-X-CONTENT-STEERING': multivariant({ 'SERVER-URI': QUOTED, 'PATHWAY-ID': QUOTED }),
    'EXT-X-IMAGES-ONLY': media(),
    'EXT-X-TILES': media({ RESOLUTION: SIZE, LAYOUT: SIZE, DURATION: DECIMAL }),
    'EXT-X-CUE-OUT': media(TEXT),
    'EXT-X-CUE-OUT-CONT': media(TEXT),
    'EXT-X-CUE-IN': media(TEXT),
    'EXT-X-CUE': media(TEXT),
    'EXT-X-SCTE35': media(TEXT),
    'EXT-SCTE35': media(TEXT),
    'EXT-OATCLS-SCTE35': media(TEXT),
    'EXT-X-ASSET': media(TEXT),
    'EXT-X-CUEPOINT': media(TEXT),
    'EXT-X-SPLICEPOINT-SCTE35': media(TEXT),
  } satisfies Record<string, Tag>),
);

const TAG_LINE = /^#(EXT[A-Z0-9-]*)(?::(.*))?$/;
/** A character at which some players end a line, or that some take for white space. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const ODD_CHARACTER = /[\u0000-\u001f\u007f\u0085\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000\ufeff]/;
/** Text that players whose patterns are not tied to lines take for a tag, wherever it stands. */
const HIDDEN_TAG = /.#\s*EXT/i;
/** Text that may be an address. */
const ADDRESS = /:\/\/|^"?(?:\.{0,2}\/|data:|blob:)|\.(?:m3u8?|mpd|mp4|m4[sva]|cmf[vat]|ts|aac|mp3|webm|vtt)\b/i;

/**
 * Finds the lines of an HLS playlist that are not in the strict grammar of RFC 8216bis, or that players read differently,
 * and names outside the table.
 */
export function checkHlsGrammar(text: string): PlaylistFinding[] {
  const findings: PlaylistFinding[] = [];
  const kinds = new Set<Tag['in']>();
  const variables = new Set<string>();
  let expectsAddress = false;
  for (const [index, ended] of text.split('\n').entries()) {
    const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
    const found = (kind: PlaylistFinding['kind'], problem: string): void =>
      void findings.push({ line: index + 1, kind, problem });
    if (index === 0 && line !== '#EXTM3U') found('ambiguous', 'the first line is not #EXTM3U');
    if (line === '') continue;
    const problem = problemOfLine(line);
    if (problem !== null) found('ambiguous', problem);
    const [, name, value] = TAG_LINE.exec(line) ?? [];
    if (name === undefined) {
      if (/^#\s*EXT/i.test(line)) found('ambiguous', 'it is nearly a tag');
      if (!line.startsWith('#')) expectsAddress = false;
      continue;
    }
    if (expectsAddress) found('ambiguous', 'a tag stands between #EXT-X-STREAM-INF and its address');
    expectsAddress = name === 'EXT-X-STREAM-INF';
    const tag = TAGS.get(name);
    if (tag === undefined) {
      found(value !== undefined && ADDRESS.test(value) ? 'unsigned' : 'unknown', `#${name}`);
      continue;
    }
    if (name === 'EXTM3U' && index > 0) found('ambiguous', '#EXTM3U stands there twice');
    if (tag.in !== 'any') kinds.add(tag.in);
    if (kinds.size > 1) {
      found('ambiguous', 'tags of a multivariant and of a media playlist stand in one file');
      kinds.clear();
    }
    for (const { kind, problem: each } of findingsOfTag(name, value, tag)) found(kind, each);
    if (name === 'EXT-X-DEFINE') {
      const defined = attributesOf(value ?? '')?.get('NAME');
      if (defined === undefined || variables.has(defined)) {
        found('ambiguous', 'a variable is defined twice, or outside the playlist');
      } else variables.add(defined);
    }
  }
  if (expectsAddress) findings.push({ line: 1, kind: 'ambiguous', problem: '#EXT-X-STREAM-INF without an address' });
  return findings;
}

function problemOfLine(line: string): string | null {
  if (ODD_CHARACTER.test(line)) return 'a character in it ends the line, or is white space, for some players';
  if (line !== line.trim()) return 'white space stands around it, which some players take as a part of it';
  return HIDDEN_TAG.test(line) ? 'a tag does not stand at the start of its line' : null;
}

type Found = Omit<PlaylistFinding, 'line'>;

function* findingsOfTag(name: string, value: string | undefined, { value: grammar }: Tag): Generator<Found> {
  if (grammar === null || typeof grammar === 'string') {
    const isOptional = grammar === null || grammar === TEXT;
    const isFit = value === undefined ? isOptional : grammar !== null && new RegExp(`^(?:${grammar})$`).test(value);
    if (!isFit) yield { kind: 'ambiguous', problem: `#${name} has another value than it can have` };
    if (name === 'EXTINF' && Number.parseFloat(value ?? '') === 0) {
      yield { kind: 'ambiguous', problem: 'a duration of zero, which some players skip' };
    }
    return;
  }
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
  yield* effectsOf(name, attributes);
}

/** Seconds that EXT-X-START may cut. */
const MAX_START_SECONDS = 0.1;

/** Finds what well-formed tags make players do beside playing the segments of the playlist. */
function* effectsOf(name: string, attributes: ReadonlyMap<string, string>): Generator<Found> {
  if (name === 'EXT-X-CONTENT-STEERING') {
    yield { kind: 'unsigned', problem: '#EXT-X-CONTENT-STEERING has a server choose what plays' };
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
