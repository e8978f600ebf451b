const QUOTED = '"[^"]*"';
const NAMED = '"[^"]+"';
/**
 * A name of a group: players in JavaScript keep groups by name in objects, where some names stand for something else. Some players take
 * spaces around it for a part of the name.
 */
const GROUP = `"(?!\\s|(?:${Object.getOwnPropertyNames(Object.prototype).join('|')})")[^"]*[^"\\s]"`;
const INTEGER = '\\d{1,20}';
/** A number that players count on from: beyond 2^53 they no longer tell segments apart. */
const SEQUENCE = '\\d{1,15}';
const DECIMAL = '\\d{1,20}(?:\\.\\d{1,20})?';
const SIGNED = `-?${DECIMAL}`;
const HEX = '0[xX][0-9A-Fa-f]+';
const WORD = '[^",\\s]+';
const SIZE = '\\d{1,6}x\\d{1,6}';
/** With its offset: some players begin at none where it is left out. */
const RANGE = '"\\d{1,15}@\\d{1,15}"|\\d{1,15}@\\d{1,15}';

/** The value of a variable: players replace none, `$` and braces in it in several ways, and end an address at others. */
const VARIABLE_VALUE = `"[^"{}$#\\\\]+"`;

/** The value of an attribute that nothing is right for: players take a variable from elsewhere, whatever else the tag says of it. */
const NONE = '(?!)';

/** Attributes of a tag with the texts of the grammars of their values. */
type Attributes = Readonly<Record<string, string>>;

/** The place of a tag, and its value: nothing, text of a grammar, or attributes with their grammars (RFC 8216bis §4.2). */
export interface Tag {
  readonly in: 'any' | 'media' | 'multivariant';
  readonly value: RegExp | ReadonlyMap<string, RegExp> | null;
  /** Attributes without which players pass over the tag, or take something else for them. */
  readonly required: readonly string[];
}

type TagOf = (value?: string | Attributes | null, ...required: string[]) => Tag;

const placed = (place: Tag['in']): TagOf => {
  return (value = null, ...required) => ({ in: place, value: compiled(value), required });
};

function compiled(value: string | Attributes | null): Tag['value'] {
  const whole = (grammar: string): RegExp => new RegExp(`^(?:${grammar})$`);
  if (value === null || typeof value === 'string') return value === null ? null : whole(value);
  return new Map(Object.entries(value).map(([name, grammar]) => [name, whole(grammar)]));
}

const [media, multivariant, any] = [placed('media'), placed('multivariant'), placed('any')];

/** Without encryption of whole segments: signed fragments are none. */
const KEY = {
  METHOD: 'NONE|SAMPLE-AES(?:-[A-Z]+)?|ISO-23001-7',
  URI: QUOTED,
  IV: HEX,
  KEYFORMAT: QUOTED,
  KEYFORMATVERSIONS: QUOTED,
  KEYID: HEX,
};
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
  VIDEO: GROUP,
  'PATHWAY-ID': QUOTED,
  'PROGRAM-ID': INTEGER,
  NAME: QUOTED,
};
const MEDIA = {
  TYPE: 'AUDIO|VIDEO|SUBTITLES|CLOSED-CAPTIONS',
  URI: NAMED,
  'GROUP-ID': GROUP,
  LANGUAGE: QUOTED,
  'ASSOC-LANGUAGE': QUOTED,
  NAME: NAMED,
  'STABLE-RENDITION-ID': QUOTED,
  DEFAULT: 'YES|NO',
  AUTOSELECT: 'YES|NO',
  FORCED: 'YES|NO',
  'INSTREAM-ID': QUOTED,
  'BIT-DEPTH': INTEGER,
  'SAMPLE-RATE': INTEGER,
  CHARACTERISTICS: QUOTED,
  CHANNELS: QUOTED,
};
/** Any text behind the colon of a tag that says nothing of what plays, or none. */
const TEXT = '[^\\r\\n]*';

/** Attributes by which players fetch files: URI, SERVER-URI, X-ASSET-URI, X-ASSET-LIST, and those of vendors. */
export const FILE_ATTRIBUTE = /[:,]\s*[A-Z0-9-]*(?:UR[IL]|ASSET-LIST)="([^"]*)"/g;

/** The tags of HLS (RFC 8216bis §4.4), and those of vendors that change nothing that plays. */
export const TAGS: ReadonlyMap<string, Tag> = new Map<string, Tag>(
  Object.entries({
    EXTM3U: any(),
    'EXT-X-VERSION': any(INTEGER),
    'EXT-X-INDEPENDENT-SEGMENTS': any(),
    'EXT-X-START': any({ 'TIME-OFFSET': SIGNED, PRECISE: 'YES|NO' }),
    'EXT-X-DEFINE': any({ NAME: NAMED, VALUE: VARIABLE_VALUE, IMPORT: NONE, QUERYPARAM: NONE }, 'VALUE', 'NAME'),
    EXTINF: media(`${DECIMAL}(?:,.*)?`),
    'EXT-X-BYTERANGE': media('\\d{1,15}(?:@\\d{1,15})?'),
    'EXT-X-DISCONTINUITY': media(),
    'EXT-X-KEY': media(KEY),
    'EXT-X-MAP': media({ URI: NAMED, BYTERANGE: RANGE }, 'URI'),
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
    'EXT-X-MEDIA-SEQUENCE': media(SEQUENCE),
    'EXT-X-DISCONTINUITY-SEQUENCE': media(SEQUENCE),
    'EXT-X-ENDLIST': media(),
    'EXT-X-PLAYLIST-TYPE': media('EVENT|VOD'),
    'EXT-X-I-FRAMES-ONLY': media(),
    // Players reload no playlist that has ended, and so have no use for the following two.
    'EXT-X-SERVER-CONTROL': media({
      'CAN-SKIP-UNTIL': DECIMAL,
      'CAN-SKIP-DATERANGES': 'YES|NO',
      'HOLD-BACK': DECIMAL,
      'PART-HOLD-BACK': DECIMAL,
      'CAN-BLOCK-RELOAD': 'YES|NO',
    }),
    'EXT-X-PART-INF': media({ 'PART-TARGET': DECIMAL }, 'PART-TARGET'),
    'EXT-X-ALLOW-CACHE': any('YES|NO'),
    'EXT-X-MEDIA': multivariant(MEDIA, 'TYPE', 'GROUP-ID', 'NAME'),
    'EXT-X-STREAM-INF': multivariant({ ...STREAM, AUDIO: GROUP, SUBTITLES: GROUP }, 'BANDWIDTH'),
    'EXT-X-I-FRAME-STREAM-INF': multivariant({ ...STREAM, URI: NAMED }, 'BANDWIDTH', 'URI'),
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
