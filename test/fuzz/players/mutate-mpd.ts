import type { SeededRandom } from '../../support/seeded-random.ts';

const ELEMENTS = [
  '<BaseURL>other/</BaseURL>',
  '<BaseURL/>',
  '<BaseURL></BaseURL>',
  '<BaseURL> other/ </BaseURL>',
  '<BaseURL>/other/</BaseURL>',
  '<BaseURL>other</BaseURL>',
  '<BaseURL>../folder/</BaseURL>',
  '<BaseURL>.</BaseURL>',
  '<BaseURL>o<b/>ther/</BaseURL>',
  '<BaseURL byteRange="$base$?$first$-$last$">other/</BaseURL>',
  '<BaseURL serviceLocation="a">other/</BaseURL>',
  '<SegmentTemplate media="other-$Number$.m4s" initialization="other.mp4" duration="2" startNumber="1"/>',
  '<SegmentTemplate timescale="1" duration="2"/>',
  '<SegmentTemplate startNumber="7"/>',
  '<SegmentTemplate endNumber="3"/>',
  '<SegmentTemplate><SegmentTimeline><S t="0" d="2" r="1"/></SegmentTimeline></SegmentTemplate>',
  '<SegmentTemplate><Initialization sourceURL="other.mp4"/></SegmentTemplate>',
  '<SegmentList duration="2"><Initialization sourceURL="other.mp4"/><SegmentURL media="other.m4s"/></SegmentList>',
  '<SegmentList><SegmentURL media="other.m4s"/></SegmentList>',
  '<SegmentList duration="2"/>',
  '<SegmentBase indexRange="0-99"><Initialization range="0-9"/></SegmentBase>',
  '<SegmentBase/>',
  '<SegmentTimeline><S t="0" d="4000" r="1"/></SegmentTimeline>',
  '<S d="1000"/>',
  '<S t="0" d="1000" r="3"/>',
  '<S d="1000" r="-1"/>',
  '<S t="7" d="1000" n="9"/>',
  '<SegmentURL media="other.m4s"/>',
  '<SegmentURL mediaRange="10-19"/>',
  '<SegmentURL/>',
  '<SegmentURL media="other.m4s" mediaRange="10-19"/>',
  '<Initialization sourceURL="other.mp4"/>',
  '<Initialization range="0-9"/>',
  '<Initialization/>',
  '<RepresentationIndex range="0-9"/>',
  '<Representation id="other" bandwidth="5"/>',
  '<Representation id="v1" bandwidth="5"><BaseURL>other/</BaseURL></Representation>',
  '<AdaptationSet contentType="audio" mimeType="audio/mp4"><SegmentTemplate duration="2" media="other-$Number$.m4s" initialization="other.mp4"/><Representation id="o" bandwidth="5"/></AdaptationSet>',
  '<AdaptationSet/>',
  '<Period/>',
  '<Period duration="PT2S"><AdaptationSet contentType="video" mimeType="video/mp4"><SegmentTemplate duration="1" media="o-$Number$.m4s" initialization="o.mp4"/><Representation id="o" bandwidth="5"/></AdaptationSet></Period>',
  '<EmptyAdaptationSet/>',
  '<SubRepresentation level="1"/>',
  '<Subset contains="1"/>',
  '<Location>other.mpd</Location>',
  '<EssentialProperty schemeIdUri="urn:mpeg:dash:chaining:2016" value="other.mpd"/>',
  '<EssentialProperty schemeIdUri="urn:other" value="x"/>',
  '<SupplementalProperty schemeIdUri="urn:mpeg:dash:adaptation-set-switching:2016" value="2"/>',
  '<EventStream schemeIdUri="urn:x"><Event presentationTime="0">x</Event></EventStream>',
  '<ProgramInformation><BaseURL>other/</BaseURL></ProgramInformation>',
  '<ServiceDescription><SegmentTemplate media="x"/></ServiceDescription>',
  '<Unknown/>',
  '<Unknown><SegmentTemplate media="other-$Number$.m4s"/></Unknown>',
  '<x:SegmentTemplate xmlns:x="urn:x" media="other-$Number$.m4s"/>',
  '<x:BaseURL xmlns:x="urn:mpeg:dash:schema:mpd:2011">other/</x:BaseURL>',
  '<BaseURL xmlns="urn:other">other/</BaseURL>',
  '<S xmlns="" d="1000"/>',
  '<!-- comment -->',
  '<!-- <BaseURL>other/</BaseURL> -->',
  '<!--><BaseURL>other/</BaseURL>-->',
  '<!---><BaseURL>other/</BaseURL>-->',
  '<!--<!--><BaseURL>other/</BaseURL><!---->',
  '<!--x--!><BaseURL>other/</BaseURL>-->',
  '<BaseURL>ot<!-- x -->her/</BaseURL>',
  '<BaseURL><![CDATA[other/]]></BaseURL>',
  '<BaseURL>other&#47;</BaseURL>',
  '<BaseURL>&#x6f;ther/</BaseURL>',
  '<BaseURL>o&amp;amp;ther/</BaseURL>',
  '<BaseURL xml:space="preserve">other/</BaseURL>',
  '<!DOCTYPE MPD [<!ENTITY other "other/">]>',
  '<!DOCTYPE MPD>',
  '<RequestParam queryTemplate="a=b"/>',
  '<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>',
  '<EssentialProperty schemeIdUri="http://dashif.org/thumbnail_tile" value="1x1"/>',
  '<EssentialProperty schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>',
  '<EssentialProperty schemeIdUri="urn:mpeg:dash:srd:2014" value="0,0,0,1,1"/>',
  '<EssentialProperty schemeIdUri="urn:mpeg:mpegB:cicp:TransferCharacteristics" value="16"/>',
  '<EssentialProperty schemeIdUri="urn:dvb:dash:fontdownload:2014" value="1" dvb:url="other.woff" dvb:fontFamily="x"/>',
  '<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/last-segment-number" value="2"/>',
  '<SupplementalProperty schemeIdUri="urn:mpeg:dash:period-continuity:2015" value="1"/>',
  '<SupplementalProperty schemeIdUri="urn:mpeg:dash:period-connectivity:2015" value="1"/>',
  '<SupplementalProperty schemeIdUri="urn:mpeg:dash:urlparam:2014"/>',
  '<ContentProtection schemeIdUri="urn:mpeg:dash:sea:aes128-cbc:2013"/>',
  '<InitializationSet id="1" contentType="video"/>',
  '<Switching interval="1" type="media"/>',
  '<Pattern id="1"><P d="1"/></Pattern>',
  '<FailoverContent valid="false"><FCS t="0" d="1"/></FailoverContent>',
  '<![CDATA[x]]>',
  '<?other x?>',
  '<?xml version="1.0"?>',
  'text',
  '&lt;',
  '&#32;',
  '&other;',
];

const ATTRIBUTES = [
  'media="other-$Number$.m4s"',
  'media="other-$Time$.m4s"',
  'media="$$other-$Number%03d$.m4s"',
  'media="$number$.m4s"',
  'media="$Number%d$.m4s"',
  'media="$Number%3d$.m4s"',
  'media="$RepresentationID%05d$-$Number$.m4s"',
  'media="$Bandwidth%09d$-$Number$.m4s"',
  'media="$SubNumber$.m4s"',
  'media="a$Number$.m4s$"',
  'media="$Number$$Time$.m4s"',
  'initialization="other.mp4"',
  'initialization="$RepresentationID$$.mp4"',
  'initialization="$Number$.mp4"',
  'initialization=""',
  'media=""',
  'sourceURL="other.mp4"',
  'sourceURL=""',
  'range="5-9"',
  'mediaRange="5-9"',
  'mediaRange="9-5"',
  'mediaRange="5-"',
  'indexRange="0-9"',
  'index="other"',
  'startNumber="0"',
  'startNumber="5"',
  'startNumber="05"',
  'startNumber="-1"',
  'startNumber=""',
  'endNumber="2"',
  'endNumber="0"',
  'timescale="0"',
  'timescale="500"',
  'timescale="1.5"',
  'duration="0"',
  'duration="1"',
  'duration="1500"',
  'duration="PT3S"',
  'duration="PT0S"',
  'start="PT1S"',
  'start="PT0.5S"',
  'presentationTimeOffset="500"',
  'presentationDuration="500"',
  'eptDelta="100"',
  'pdDelta="100"',
  'availabilityTimeOffset="1"',
  'mediaPresentationDuration="PT3S"',
  'mediaPresentationDuration="PT0S"',
  'mediaPresentationDuration="P0Y0M0DT0H0M5S"',
  'mediaPresentationDuration="PT1H"',
  'type="static"',
  'type="dynamic"',
  'type="STATIC"',
  'availabilityStartTime="2026-01-01T00:00:00Z"',
  'minimumUpdatePeriod="PT1S"',
  't="5"',
  'd="500"',
  'r="1"',
  'r="-1"',
  'r="-2"',
  'r="1.5"',
  'n="4"',
  'k="2"',
  'id="v1"',
  'id=""',
  'id="a b"',
  'id="a/b"',
  'id="$Number$"',
  'id="&quot;"',
  'bandwidth="007"',
  'bandwidth=""',
  'bandwidth="x"',
  'mimeType="text/vtt"',
  'mimeType="VIDEO/MP4"',
  'contentType="text"',
  'codecs="x"',
  'lang="en"',
  'dependencyId="v1"',
  'mediaStreamStructureId="x"',
  'baseUrl="other/"',
  'BaseURL="other/"',
  'segmentUrls="x"',
  'initializationSetRef="1"',
  'profiles="urn:other"',
  'xlink:href="other"',
  'xlink:actuate="onLoad"',
  '_media="other-$Number$.m4s"',
  '_d="1"',
  `_='x d="9"'`,
  '_:media="other"',
  'd:media="other"',
  'presentationDuration="1"',
  'eptDelta="5"',
  'pdDelta="5"',
  'availabilityTimeOffset="INF"',
  'availabilityTimeComplete="false"',
  'k="2"',
  'associationId="v1"',
  'initializationPrincipal="other"',
  'bitstreamSwitching="true"',
  'containerProfiles="cmfc"',
  'contentType="image"',
  'contentType="VIDEO"',
  'mimeType="VIDEO/MP4"',
  'mimeType="image/jpeg"',
  'mimeType="text/vtt"',
  'mimeType="application/mp4"',
  'scte214:supplementalCodecs="x"',
  'xmlns="urn:other"',
  'xmlns=""',
  'xmlns:x="urn:x"',
  'x:media="other"',
  'x:duration="1"',
  'other="1"',
  'tagName="x"',
  '__proto__="x"',
  'toString="x"',
];

const CHARACTERS = [
  ' ',
  '\t',
  '\n',
  '\r\n',
  '\u00a0',
  '\u2028',
  '\ufeff',
  '&amp;',
  '&#x20;',
  '&#9;',
  '&#10;',
  '&#47;',
  '&#x2F;',
  '&#X2F;',
  '&#0;',
  '&sol;',
  '&',
  '&amp;amp;',
  '&quot;',
  '<',
  '>',
  '"',
  "'",
  '$',
  '$$',
  '%',
  '%20',
  '%2F',
  '%2e',
  '#',
  '?',
  '\\',
  '/',
  '//',
  './',
  '../',
  '{',
  '+',
  '-',
  '.',
  '0',
  '1',
  'x',
  'é',
  'e\u0301',
  '😀',
  ';',
  ':',
  '@',
  '|',
  '\0',
];

const TAG = /<\/?[A-Za-z][^<>]*>/g;
const ATTRIBUTE = /\s([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')/g;

type Change = (text: string, random: SeededRandom, other: string) => string;

/** Changes an MPD in one way, as an attacker would; `other` is a second one. */
export function changeMpd(text: string, random: SeededRandom, other: string): string {
  return random.pick(CHANGES)(text, random, other);
}

const CHANGES: readonly Change[] = [
  (text, random) => insertBetween(text, random, random.pick(ELEMENTS)),
  (text, random) => insertBetween(text, random, random.pick(ELEMENTS)),
  (text, random, other) => insertBetween(text, random, random.pick(elementsOf(other)).text),
  (text, random) => editElement(text, random, (element) => element + element),
  (text, random) => editElement(text, random, () => ''),
  moveElement,
  (text, random) =>
    editElement(text, random, (element) =>
      element
        .replace(/<(\/?)(\w+)/g, '<$1x:$2')
        .replace('>', ' >')
        .replace(/ (?=\/?>)/, ' xmlns:x="urn:mpeg:dash:schema:mpd:2011" '),
    ),
  (text, random) => editElement(text, random, (element) => `<!--${element}-->`),
  (text, random) => editTag(text, random, (tag) => tag.replace(/\s*(\/?>)$/, ` ${random.pick(ATTRIBUTES)}$1`)),
  (text, random) => editTag(text, random, (tag) => setAttribute(tag, random.pick(ATTRIBUTES))),
  (text, random) => editTag(text, random, (tag) => setAttribute(tag, random.pick(ATTRIBUTES))),
  (text, random) => editAttribute(text, random, (attribute) => attribute + attribute),
  (text, random) => editAttribute(text, random, () => ''),
  (text, random) => editAttribute(text, random, (attribute, name) => attribute.replace(name, name.toUpperCase())),
  (text, random) => editAttribute(text, random, (attribute, name) => attribute.replace(name, `x:${name}`)),
  (text, random) => editAttribute(text, random, (attribute) => insertAt(attribute, random)),
  (text, random) => editAttribute(text, random, (attribute) => insertAt(attribute, random)),
  (text, random) => editAttribute(text, random, (attribute) => encodeOne(attribute, random)),
  (text, random) =>
    editAttribute(text, random, (attribute) =>
      attribute.replace(
        /\d+/,
        random.pick([
          '0',
          '00',
          '1',
          '2',
          '3',
          '01',
          '+1',
          '-1',
          '1e3',
          '1.5',
          ' 2 ',
          '0x2',
          '9007199254740993',
          '99999999999999999999',
          '',
        ]),
      ),
    ),
  (text, random) => editTag(text, random, (tag) => changeCase(tag, random)),
  (text, random) => insertAt(text, random),
];

function insertBetween(text: string, random: SeededRandom, piece: string): string {
  const borders = [...text.matchAll(TAG)].map(({ index, 0: tag }) => index + (random.chance(0.5) ? tag.length : 0));
  const at = random.pick([...borders, text.length]);
  return text.slice(0, at) + piece + text.slice(at);
}

interface FoundElement {
  readonly text: string;
  readonly start: number;
}

/** Returns the elements of a document whose end is found by counting the tags. */
function elementsOf(text: string): FoundElement[] {
  const open: number[] = [];
  const found: FoundElement[] = [];
  for (const { index, 0: tag } of text.matchAll(TAG)) {
    if (!tag.startsWith('</')) open.push(index);
    if (!tag.startsWith('</') && !tag.endsWith('/>')) continue;
    const start = open.pop();
    if (start !== undefined) found.push({ text: text.slice(start, index + tag.length), start });
  }
  return found.length === 0 ? [{ text: '', start: text.length }] : found;
}

function editElement(text: string, random: SeededRandom, edit: (element: string) => string): string {
  const { text: element, start } = random.pick(elementsOf(text));
  return text.slice(0, start) + edit(element) + text.slice(start + element.length);
}

function moveElement(text: string, random: SeededRandom): string {
  const { text: element, start } = random.pick(elementsOf(text));
  return insertBetween(text.slice(0, start) + text.slice(start + element.length), random, element);
}

function editTag(text: string, random: SeededRandom, edit: (tag: string) => string): string {
  const tags = [...text.matchAll(TAG)].filter(({ 0: each }) => !each.startsWith('</'));
  if (tags.length === 0) return text;
  const { index, 0: tag } = random.pick(tags);
  return text.slice(0, index) + edit(tag) + text.slice(index + tag.length);
}

function setAttribute(tag: string, attribute: string): string {
  const [name = ''] = attribute.split('=');
  const without = tag.replace(new RegExp(`\\s${name}="[^"]*"`), '');
  return without.replace(/\s*(\/?>)$/, (end) => ` ${attribute}${end.trim()}`);
}

function editAttribute(text: string, random: SeededRandom, edit: (attribute: string, name: string) => string): string {
  return editTag(text, random, (tag) => {
    const attributes = [...tag.matchAll(ATTRIBUTE)];
    if (attributes.length === 0) return tag;
    const { index, 0: attribute, 1: name = '' } = random.pick(attributes);
    return tag.slice(0, index) + edit(attribute, name) + tag.slice(index + attribute.length);
  });
}

function insertAt(text: string, random: SeededRandom): string {
  const at = random.between(0, text.length);
  return text.slice(0, at) + random.pick(CHARACTERS) + text.slice(at + (random.chance(0.2) ? 1 : 0));
}

function encodeOne(attribute: string, random: SeededRandom): string {
  const start = attribute.search(/["']/) + 1;
  const at = random.between(start, Math.max(attribute.length - 2, start));
  const code = attribute.charCodeAt(at);
  const hex = code.toString(16);
  const encoded = random.pick([
    `&#${code};`,
    `&#x${hex};`,
    `&#X${hex};`,
    `&#0${code};`,
    `%${hex}`,
    `&#${code}`,
    `%25${hex}`,
  ]);
  return attribute.slice(0, at) + encoded + attribute.slice(at + 1);
}

function changeCase(tag: string, random: SeededRandom): string {
  const words = [...tag.matchAll(/[A-Za-z]+/g)];
  const { index, 0: word } = random.pick(words);
  const changed = word === word.toLowerCase() ? word.toUpperCase() : word.toLowerCase();
  return tag.slice(0, index) + changed + tag.slice(index + word.length);
}
