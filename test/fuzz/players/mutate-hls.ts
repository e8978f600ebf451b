import type { SeededRandom } from '../../support/seeded-random.ts';

/** Lines of HLS: each tag of the table once or more, nearly tags, comments and addresses. */
const LINES = [
  '#EXTINF:4.000,',
  '#EXTINF:1',
  '#EXTINF:2.5,title, with a comma',
  '#EXTINF:4.0,other.m4s',
  '#EXTINF:4.0 other.m4s',
  '#EXTINF:,',
  '#EXTINF:0.0000001,',
  '#EXTINF:99999999999,',
  '#EXT-X-BYTERANGE:500@100',
  '#EXT-X-BYTERANGE:500',
  '#EXT-X-BYTERANGE:0500@0100',
  '#EXT-X-BYTERANGE:0@0',
  '#EXT-X-GAP',
  '#EXT-X-GAP:1',
  '#EXT-X-DISCONTINUITY',
  '#EXT-X-DISCONTINUITY:',
  '#EXT-X-ENDLIST',
  '#EXT-X-I-FRAMES-ONLY',
  '#EXT-X-IMAGES-ONLY',
  '#EXT-X-TARGETDURATION:9',
  '#EXT-X-TARGETDURATION:0',
  '#EXT-X-MEDIA-SEQUENCE:5',
  '#EXT-X-DISCONTINUITY-SEQUENCE:5',
  '#EXT-X-PLAYLIST-TYPE:VOD',
  '#EXT-X-PLAYLIST-TYPE:EVENT',
  '#EXT-X-VERSION:9',
  '#EXT-X-VERSION:1',
  '#EXT-X-INDEPENDENT-SEGMENTS',
  '#EXT-X-START:TIME-OFFSET=0',
  '#EXT-X-ALLOW-CACHE:NO',
  '#EXT-X-BITRATE:100',
  '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z',
  '#EXT-X-PROGRAM-DATE-TIME:2026-99-99T00:00:00Z',
  '#EXT-X-DATERANGE:ID="x",START-DATE="2026-01-01T00:00:00Z"',
  '#EXT-X-DATERANGE:ID="x",START-DATE="2026-01-01T00:00:00Z",CLASS="com.apple.hls.interstitial",X-ASSET-URI="other.m3u8"',
  '#EXT-X-MAP:URI="other-init.mp4"',
  '#EXT-X-MAP:URI="other-init.mp4",BYTERANGE="100@50"',
  '#EXT-X-MAP:URI="other-init.mp4",BYTERANGE="100"',
  '#EXT-X-MAP:URI="other-init.mp4",BYTERANGE=100@50',
  '#EXT-X-MAP:URI=""',
  '#EXT-X-MAP:BYTERANGE="100@50"',
  '#EXT-X-KEY:METHOD=NONE',
  '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key"',
  '#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,AAAA",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"',
  '#EXT-X-DEFINE:NAME="n",VALUE="other"',
  '#EXT-X-DEFINE:NAME="n",VALUE="a$&b"',
  '#EXT-X-DEFINE:NAME="n",IMPORT="m"',
  '#EXT-X-DEFINE:NAME="n",VALUE="{$root}"',
  '#EXT-X-DEFINE:QUERYPARAM="n"',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",NAME="other",URI="other.m3u8"',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",NAME="English",URI="other.m3u8"',
  '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="angles",NAME="main",URI="other.m3u8"',
  '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subs",NAME="other",URI="other.m3u8"',
  '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="other",URI="other.m3u8"',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",URI="other.m3u8"',
  '#EXT-X-MEDIA:TYPE=AUDIO,NAME="other",URI="other.m3u8"',
  '#EXT-X-STREAM-INF:BANDWIDTH=1000',
  '#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO="low"',
  '#EXT-X-STREAM-INF:BANDWIDTH=1000\nother.m3u8',
  '#EXT-X-STREAM-INF:CODECS="avc1.42c00c"\nother.m3u8',
  '#EXT-X-STREAM-INF:\nother.m3u8',
  '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1000,URI="other.m3u8"',
  '#EXT-X-I-FRAME-STREAM-INF:URI="other.m3u8"',
  '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1000',
  '#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1000,URI="other.m3u8"',
  '#EXT-X-SESSION-DATA:DATA-ID="a",VALUE="b"',
  '#EXT-X-SESSION-DATA:DATA-ID="a",URI="other.json"',
  '#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="key"',
  '#EXT-X-CONTENT-STEERING:SERVER-URI="steering.json"',
  '#EXT-X-TILES:RESOLUTION=1x1,LAYOUT=1x1',
  '#EXT-X-SKIP:SKIPPED-SEGMENTS=1',
  '#EXT-X-PART:DURATION=1,URI="other.m4s"',
  '#EXT-X-PRELOAD-HINT:TYPE=MAP,URI="other.mp4"',
  '#EXT-X-PREFETCH:other.m4s',
  '#EXT-X-RENDITION-REPORT:URI="other.m3u8"',
  '#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=30',
  '#EXT-X-PART-INF:PART-TARGET=1',
  '#EXT-X-CUE-OUT:30',
  '#EXT-X-CUE-OUT:DURATION=30',
  '#EXT-X-CUE-IN',
  '#EXT-X-SCTE35:CUE="AAAA"',
  '#EXT-X-ASSET:CAID=0x01',
  '#EXT-OATCLS-SCTE35:AAAA',
  '#EXT-X-UNKNOWN',
  '#EXT-X-UNKNOWN:A=1',
  '#EXTVLCOPT:x=1',
  '#EXTGRP:other',
  '#EXTIMG:other',
  '#EXTM3U',
  '#EXTM3U8',
  '#EXT',
  '#EXT-X-',
  '#EXT-X-MAP',
  '#EXT-X-BYTERANGE',
  '#EXT-X-ENDLIST-NOT',
  '#EXTINFO:4,',
  '#',
  '# a comment',
  '#comment:with="quotes",URI="other.m4s"',
  '#ext-x-endlist',
  '## #EXTINF:4,',
  '',
  'other.m4s',
  'other.m3u8',
  './other.m4s',
  '/other.m4s',
  '//folder.invalid/other.m4s',
  'http://folder.invalid/other.m4s',
  'http:other.m4s',
  '?other',
  '%23other.m4s',
  'a/../other.m4s',
  'a//other.m4s',
  'other.m4s?a=b',
  'other.m4s#a',
  'other.m4s;a',
  'a b.m4s',
  'a\\other.m4s',
  '{$n}.m4s',
  '{$n}{$n}.m4s',
  '{$root}/other.m4s',
  'data:,x',
];

const ATTRIBUTES = [
  'URI="other.m4s"',
  'URI=other.m4s',
  'URI=""',
  'BYTERANGE="5@3"',
  'BYTERANGE="5"',
  'BANDWIDTH=1',
  'TYPE=VIDEO',
  'TYPE=AUDIO',
  'GROUP-ID="low"',
  'GROUP-ID=""',
  'GROUP-ID="__proto__"',
  'NAME="English"',
  'NAME=""',
  'NAME="1"',
  'NAME="{$n}"',
  'LANGUAGE="en"',
  'AUDIO="high"',
  'VIDEO="angles"',
  'SUBTITLES="subs"',
  'CLOSED-CAPTIONS=NONE',
  'DEFAULT=YES',
  'PATHWAY-ID="."',
  'STABLE-RENDITION-ID="a"',
  'X-OTHER="a,URI=b"',
  "X-OTHER='a'",
  'X-URI="other.m4s"',
  'VALUE="x"',
  'PROGRAM-ID=1',
  'CODECS="avc1.42c00c"',
  'FRAME-RATE=25',
  'RESOLUTION=1x1',
  'VIDEO-RANGE=SDR',
  'SCORE=1',
];

const CHARACTERS = [
  ' ', '  ', '\t', '\r', '\n', '\v', '\f', '\0', '\u0085', '\u00a0', '\u2028', '\ufeff', '\u200b', '"', "'", ',', '=', ':', '@', '#', '?', '%', '%20', '%2e', '%2F', '%23', '\\', '/', '//', './', '../', ';', '&', '&amp;', '$', '{', '}', '{$n}', '-', '+', '.', '0', '00', '1', 'e1', 'x', 'é', 'e\u0301', '😀', '|', '^', '`', '[', ']', '<', '>', '*', '!',
];

const NUMBERS = ['0', '00', '1', '01', '5', '1.5', '.5', '5.', '1e3', '-1', '+1', '9007199254740993', '999999999999999', '18446744073709551616'];

/** Changes an HLS playlist in one way, as an attacker would; `other` is a second playlist. */
export function changeHls(text: string, random: SeededRandom, other: string): string {
  return random.pick(CHANGES)(text, random, other);
}

type Change = (text: string, random: SeededRandom, other: string) => string;

const CHANGES: readonly Change[] = [
  (text, random) => editLine(text, random, (line) => [random.pick(LINES), line]),
  (text, random) => editLine(text, random, (line) => [random.pick(LINES), line]),
  (text, random) => editLine(text, random, (line) => [line, line]),
  (text, random) => editLine(text, random, () => []),
  (text, random, other) => editLine(text, random, (line) => [random.pick(other.split('\n')), line]),
  (text, random) => editLine(text, random, (line) => [changeAttributes(line, random)], /[=,]/),
  (text, random) => editLine(text, random, (line) => [changeAttributes(line, random)], /[=,]/),
  (text, random) => editLine(text, random, (line) => [insertAt(line, random)]),
  (text, random) => editLine(text, random, (line) => [insertAt(line, random)], /^[^#]/),
  (text, random) => editLine(text, random, (line) => [changeCase(line, random)]),
  (text, random) => editLine(text, random, (line) => [encodeOne(line, random)], /^[^#]|URI=/),
  (text, random) => editLine(text, random, (line) => [changeNumber(line, random)], /\d/),
  (text, random) => editLine(text, random, (line) => [line + random.pick([',', ' ', '#', ' #EXTINF:4,', ',x', ':', ' other.m4s', '?', '\r', '\\'])]),
  moveLine,
  swapLines,
  mergePlaylists,
  changeLineEnds,
  useVariable,
];

function editLine(text: string, random: SeededRandom, edit: (line: string) => string[], pattern = /^/): string {
  const lines = text.split('\n');
  const fitting = [...lines.keys()].filter((at) => pattern.test(lines[at] ?? ''));
  if (fitting.length === 0) return text;
  const at = random.pick(fitting);
  lines.splice(at, 1, ...edit(lines[at] ?? ''));
  return lines.join('\n');
}

function changeAttributes(line: string, random: SeededRandom): string {
  const [, tag = '', list = ''] = /^(#[^:]*:)?(.*)$/s.exec(line) ?? [];
  const attributes = list.match(/[^",]*(?:"[^"]*"[^",]*)*(?:,|$)/g)?.map((each) => each.replace(/,$/, '')) ?? [];
  if (attributes.at(-1) === '') attributes.pop();
  const at = random.between(0, Math.max(attributes.length - 1, 0));
  const chosen = attributes[at] ?? '';
  const [name = '', value = ''] = chosen.split(/=(.*)/s);
  const edits: readonly (readonly string[])[] = [
    [chosen, chosen],
    [],
    [random.pick(ATTRIBUTES), chosen],
    [chosen, random.pick(ATTRIBUTES)],
    [`${name} = ${value}`],
    [`${name}=${value.replaceAll('"', '')}`],
    [`${name}="${value.replaceAll('"', '')}"`],
    [`${name}='${value.replaceAll('"', '')}'`],
    [`${name}=`],
    [name],
    [`${name.toLowerCase()}=${value}`],
    [`X-${chosen}`],
    [`${random.pick(ATTRIBUTES).split('=')[0]}=${value}`],
    ['', chosen],
  ];
  attributes.splice(at, 1, ...random.pick(edits));
  return tag + (random.chance(0.2) ? random.shuffled(attributes) : attributes).join(random.chance(0.05) ? ', ' : ',');
}

function insertAt(line: string, random: SeededRandom): string {
  const borders = [...line.matchAll(/[:,=@"./]|^|$/g)].map(({ index }) => index + (random.chance(0.5) ? 1 : 0));
  const at = random.chance(0.6) ? random.pick(borders) : random.between(0, line.length);
  return line.slice(0, at) + random.pick(CHARACTERS) + line.slice(at + (random.chance(0.2) ? 1 : 0));
}

function changeCase(line: string, random: SeededRandom): string {
  const words = [...line.matchAll(/[A-Za-z-]+/g)];
  if (words.length === 0) return line;
  const { index, 0: word } = random.pick(words);
  const changed = word === word.toLowerCase() ? word.toUpperCase() : word.toLowerCase();
  return line.slice(0, index) + changed + line.slice(index + word.length);
}

function encodeOne(line: string, random: SeededRandom): string {
  const start = line.startsWith('#') ? line.indexOf('URI=') + 5 : 0;
  const at = random.between(start, Math.max(line.length - 2, start));
  const code = line.charCodeAt(at);
  if (Number.isNaN(code) || code > 126) return line;
  const hex = code.toString(16).padStart(2, '0');
  const encoded = random.pick([`%${hex}`, `%${hex.toUpperCase()}`, `%25${hex}`, `&#${code};`, `\\x${hex}`, `%c1%${(code | 0x80).toString(16)}`]);
  return line.slice(0, at) + encoded + line.slice(at + 1);
}

function changeNumber(line: string, random: SeededRandom): string {
  const { index, 0: number } = random.pick([...line.matchAll(/\d+(?:\.\d+)?/g)]);
  return line.slice(0, index) + random.pick([...NUMBERS, `0${number}`, `${number}0`, `${number}.0`]) + line.slice(index + number.length);
}

function moveLine(text: string, random: SeededRandom): string {
  const lines = text.split('\n');
  const [moved = ''] = lines.splice(random.between(0, lines.length - 1), 1);
  lines.splice(random.between(0, lines.length), 0, moved);
  return lines.join('\n');
}

function swapLines(text: string, random: SeededRandom): string {
  const lines = text.split('\n');
  const first = random.between(0, lines.length - 1);
  const second = random.between(0, lines.length - 1);
  [lines[first], lines[second]] = [lines[second] ?? '', lines[first] ?? ''];
  return lines.join('\n');
}

function mergePlaylists(text: string, random: SeededRandom, other: string): string {
  const lines = text.split('\n');
  const others = other.split('\n');
  const from = random.between(0, others.length - 1);
  const piece = others.slice(random.chance(0.3) ? 1 : from, from + random.between(1, 8));
  lines.splice(random.chance(0.2) ? lines.length : random.between(1, lines.length), 0, ...piece);
  return lines.join('\n');
}

function changeLineEnds(text: string, random: SeededRandom): string {
  switch (random.between(0, 4)) {
    case 0:
      return text.replaceAll('\n', '\r\n');
    case 1:
      return text.trimEnd();
    case 2:
      return text.replaceAll('\n', '\n\n');
    case 3:
      return `\ufeff${text}`;
    default:
      return text.replaceAll('\n', '\r');
  }
}

/** Writes a part of an address as a variable. */
function useVariable(text: string, random: SeededRandom): string {
  const value = random.pick(['film', 'a/b', '$1', '$&', '', 'x"', 'é', '{$m}', '%20', ' ', '#', '..']);
  const used = editLine(text, random, (line) => [line.replace(/[\w-]+(?=\.\w+"?)/, random.pick(['{$v}', '{$v}{$v}', '{$V}', '{$v }', '{$ v}', '{$v}-{$n}']))], /^[^#]|URI=/);
  const definition = `#EXT-X-DEFINE:NAME="v",VALUE="${value}"`;
  return editLine(used, random, (line) => [line, definition], random.chance(0.7) ? /^#EXTM3U/ : /^/);
}
