import {
  ELEMENTS,
  type ElementGrammar,
  FILE_ADDRESSES,
  FOLLOWED,
  INSIDE_OPAQUE,
  isOfMpeg,
  isTakenForMpeg,
  KNOWN_ATTRIBUTES,
  OPAQUE,
  REQUIRED,
  VALUES,
} from './mpd-elements.ts';
import { PLAYED_PROPERTIES } from './mpd-kinds.ts';
import { checkMarkup, type Report } from './mpd-markup.ts';
import type { MpdDocument } from './playlist-document.ts';
import { ADDRESS, ODD_ADDRESS, ODD_CHARACTER, type PlaylistFinding } from './playlist-finding.ts';
import { childrenOf, type XmlElement } from './xml-element.ts';

/** Schemes by which players, or some of them, play something else than the MPD says, with what they do. */
const MISLEADING_SCHEMES: readonly (readonly [scheme: RegExp, effect: string, kind?: PlaylistFinding['kind']])[] = [
  [
    // They fetch something else than the addresses of the MPD (chaining, fallbacks, alternatives, parameters).
    /^urn:(?:mpeg:dash:(?:chaining|fallback|urlparam|event:alternative|event:callback|mpd-linking|resource-linking)|dvb:dash:fontdownload)/i,
    'leads players elsewhere',
    'unsigned',
  ],
  [/^http:\/\/dashif\.org\/guidelines\/last-segment-number/i, 'has some players leave out segments'],
  // They get others: segments that are signed are not encrypted as wholes.
  [/^urn:mpeg:dash:sea:/i, 'has some players decrypt whole segments'],
];
/** Essential properties that they know: also those of key frames and of pictures for seek bars, which do not play as media. */
const KNOWN_PROPERTIES: ReadonlySet<string> = new Set([
  ...PLAYED_PROPERTIES.keys(),
  'http://dashif.org/guidelines/trickmode',
  'http://dashif.org/thumbnail_tile',
  'http://dashif.org/guidelines/thumbnail_tile',
  'urn:mpeg:dash:ssr:2023',
  'urn:mpeg:dash:pattern:2024',
]);

/**
 * Finds what of an MPD is not in the strict grammar of ISO/IEC 23009-1, or what players read differently, and names outside the
 * table.
 */
export function checkMpdGrammar({
  path: playlist,
  text,
  root,
  lineIndex,
}: Pick<MpdDocument, 'path' | 'text' | 'root' | 'lineIndex'>): PlaylistFinding[] {
  const findings: PlaylistFinding[] = [];
  const found: Report = (at, problem, kind = 'ambiguous') =>
    void findings.push({ playlist, line: lineIndex.lineAt(at), kind, problem });
  checkMarkup(text, found);
  checkElement(root, found, AT_ROOT);
  checkOtherElements(root, text, { isOfMpeg: true, isOpaque: false }, found);
  checkIdentifiers(root, found);
  return findings;
}

/** Finds identifiers that stand twice where they must not: players then take one element for the other, or refuse both. */
function checkIdentifiers(root: XmlElement, found: Report): void {
  const periods = childrenOf(root, 'Period');
  const sets = periods.map((period) => childrenOf(period, 'AdaptationSet'));
  const representations = sets.map((each) => each.flatMap((set) => childrenOf(set, 'Representation')));
  for (const scope of [periods, ...sets, ...representations]) {
    const taken = new Set<string>();
    for (const { name, attributes, start } of scope) {
      const id = attributes.get('id');
      if (id !== undefined && taken.has(id)) found(start, `<${name}> has the id of another one`);
      if (id !== undefined) taken.add(id);
    }
  }
}

/** An addressing scheme as far as the elements around an element say it. */
interface Addressing {
  readonly schemes: ReadonlySet<string>;
  /** The element that says when segments begin, which they are, and which the init segment is. */
  readonly times: ReadonlySet<string>;
  readonly urls: ReadonlySet<string>;
  readonly inits: ReadonlySet<string>;
  /** True where a template tells segments apart by their numbers or times. */
  readonly isCounted: boolean;
  /** True where the period has an end, or none is to be expected yet. */
  readonly hasEnd: boolean;
}

const AT_ROOT: Addressing = {
  schemes: new Set(),
  times: new Set(),
  urls: new Set(),
  inits: new Set(),
  isCounted: false,
  hasEnd: false,
};

function checkElement(element: XmlElement, found: Report, around: Addressing): void {
  const { name, children, text, start } = element;
  checkTarget(element, found);
  if (OPAQUE.has(name)) return checkTargetsIn(element, found);
  const grammar = ELEMENTS.get(name);
  if (grammar === undefined) return;
  if (!grammar.hasText && text !== '') found(start, `<${name}> holds text`);
  if (grammar.hasText && children.length > 0) found(start, `<${name}> holds elements`);
  // Some players fill identifiers of templates in base addresses, too.
  if (name === 'BaseURL' && (ODD_CHARACTER.test(text) || ODD_ADDRESS.test(text) || text.includes('$'))) {
    found(start, 'an address that players and servers read differently');
  }
  checkAttributes(element, grammar, found);
  if (childrenOf(element, 'BaseURL').length > 1) {
    found(start, `<${name}> has a second base address`, 'unsigned');
  }
  if (name === 'SegmentTimeline') checkTimeline(element, found);
  const addressing = checkAddressing(element, around, found);
  let hasParts = false;
  for (const child of children) {
    if (isOfMpeg(child.name) && !grammar.children.has(child.name)) {
      found(child.start, `<${child.name}> cannot stand in <${name}>`);
    }
    if (PARTS.has(child.name)) hasParts = true;
    else if (hasParts && (child.name === 'BaseURL' || SCHEMES.includes(child.name))) {
      found(child.start, `<${child.name}> stands behind elements that it is for, and some players pass them over`);
    }
    checkElement(child, found, addressing);
  }
}

/** The elements around an element: the last namespace without a prefix, and one whose content says nothing of what plays. */
interface Surroundings {
  readonly isOfMpeg: boolean;
  readonly isOpaque: boolean;
}

/**
 * Finds elements outside the tables. Those of the namespace of MPEG may have newer players play something else. Of others the name
 * counts, because some players ignore namespaces: they are known to nobody, unless players follow them or they have an address.
 */
function checkOtherElements(element: XmlElement, text: string, around: Surroundings, found: Report): void {
  const { name, start, children } = element;
  // Licences and manifests lie elsewhere, and nothing in these elements plays.
  if (name === 'ContentProtection' || name === 'ContentAuthenticity') return;
  const tag = text.slice(start, text.indexOf('>', start));
  const namespace = /\sxmlns\s*=\s*["']([^"']*)/.exec(tag)?.[1];
  const isInMpeg = namespace === undefined ? around.isOfMpeg : namespace.startsWith('urn:mpeg:dash:schema:mpd:');
  if (!isOfMpeg(name) && !(around.isOpaque && INSIDE_OPAQUE.has(name))) {
    const isNewer = isInMpeg && tag.startsWith(`<${name}`) && !(around.isOpaque && OF_APPLICATIONS.test(name));
    // Events, and what descriptors hold, are no elements that players look for.
    if (!around.isOpaque && isTakenForMpeg(name)) {
      return found(start, `<${name}> differs from an element of MPEG by capitals, and some players take it for that`);
    }
    if (isNewer || FOLLOWED.has(name)) {
      return found(start, `<${name}> is no element that is known here, and some players may follow it`);
    }
    if (!around.isOpaque && OF_APPLICATIONS.test(name) && KNOWN_ATTRIBUTES.has(name.toLowerCase())) {
      return found(start, `<${name}> has the name of an attribute, which some players take for it`);
    }
    if (leadsElsewhere(element)) found(start, `<${name}>`, 'unsigned');
    else if (!around.isOpaque) found(start, `<${name}>`, 'unknown');
    return;
  }
  const isOpaque = around.isOpaque || OPAQUE.has(name);
  for (const child of children) checkOtherElements(child, text, { isOfMpeg: isInMpeg, isOpaque }, found);
}

/** Names of elements of applications, as in events and descriptors; those of MPEG begin with a capital. */
const OF_APPLICATIONS = /^[a-z]/;

/** Names of attributes that are addresses, whatever these look like. */
const ADDRESS_NAME = /(?:ur[il]|href|src)$/i;

/** Returns true for an element with an address in it. */
function leadsElsewhere({ attributes, text, children }: XmlElement): boolean {
  const own = [...attributes].filter(([name]) => !/^(?:xmlns|schemeIdUri|schemaLocation)/.test(name));
  const hasAddress = own.some(([name, value]) => ADDRESS.test(value) || (ADDRESS_NAME.test(name) && value !== ''));
  return hasAddress || ADDRESS.test(text) || children.some(leadsElsewhere);
}

/** Finds elements that lead players elsewhere in one that says nothing else of what plays. Events are those of applications. */
function checkTargetsIn({ name, children }: XmlElement, found: Report): void {
  if (name === 'EventStream') return;
  for (const child of children) {
    checkTarget(child, found);
    checkTargetsIn(child, found);
  }
}

/** Finds elements that lead players elsewhere. */
function checkTarget({ name, attributes, start }: XmlElement, found: Report): void {
  if (/^(?:Location|PatchLocation|ContentSteering|RequestParam|RepresentationIndex|BitstreamSwitching)$/.test(name)) {
    found(start, `<${name}> has players load from elsewhere`, 'unsigned');
  }
  const scheme = attributes.get('schemeIdUri');
  if (scheme === undefined) return;
  const misleading = MISLEADING_SCHEMES.find(([each]) => each.test(scheme));
  if (misleading !== undefined) found(start, `<${name}> ${misleading[1]} (${scheme})`, misleading[2]);
  else if (name === 'EssentialProperty' && !KNOWN_PROPERTIES.has(scheme)) {
    found(start, `EssentialProperty ${scheme}`, 'unknown');
  }
}

function checkAttributes({ name, attributes, start }: XmlElement, grammar: ElementGrammar, found: Report): void {
  for (const [attribute, value] of attributes) {
    if (grammar.attributes.has(attribute)) {
      const form = VALUES.get(attribute) ?? VALUES.get(`${name} ${attribute}`);
      if (ODD_CHARACTER.test(value) || form?.test(value) === false) {
        found(start, `${attribute} of <${name}> has another value than it can have`);
      }
      if (FILE_ADDRESSES.has(attribute) && (ODD_ADDRESS.test(value) || /^[;?#]|\/$|^$/.test(value))) {
        found(start, `${attribute} of <${name}> is an address that players and servers read differently`);
      }
      if (TEMPLATES.has(attribute) && name === 'SegmentTemplate' && !TEMPLATE.test(value)) {
        found(start, `${attribute} of <${name}> has an identifier that players fill differently`);
      }
      continue;
    }
    if (/^(?:xmlns|xsi|xml$)/.test(attribute)) continue;
    // Some players have every element inherit every attribute of those around it.
    if (KNOWN_ATTRIBUTES.has(attribute.toLowerCase())) found(start, `<${name}> has no ${attribute}`);
    else found(start, `${attribute} of <${name}>`, ADDRESS.test(value) ? 'unsigned' : 'unknown');
  }
  for (const required of REQUIRED.get(name) ?? []) {
    if ((attributes.get(required) ?? '') === '') found(start, `<${name}> without ${required}`);
  }
  const reference = REFERENCES.get(name);
  if (reference?.every((each) => !attributes.has(each))) found(start, `<${name}> names nothing`);
}

/** Attributes by which elements name bytes, of which they have one at least. */
const REFERENCES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    Initialization: ['sourceURL', 'range'],
    SegmentURL: ['media', 'mediaRange'],
  }),
);

/** Attributes that say when the periods in an element end. */
const ENDS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({ MPD: ['mediaPresentationDuration'], Period: ['duration'] }),
);
/** Identifiers that tell the segments of a representation apart. */
const COUNTED = /\$(?:Number|Time)/;
/** Attributes of SegmentTemplate with identifiers in them. */
const TEMPLATES: ReadonlySet<string> = new Set(['media', 'initialization', 'index']);
/** Text with identifiers, only those of numbers with a width (ISO/IEC 23009-1 §5.3.9.4.4). */
const TEMPLATE = /^(?:[^$]|\$RepresentationID\$|\$(?:Number|Time|Bandwidth)(?:%0\d{1,2}d)?\$)*$/;

/** The part of a segment by which the next one may begin before its end. */
const MAX_OVERLAP = 0.01;

/** The end of the times that players hold in signed integers of 64 bits. */
const MAX_TICKS = 2 ** 63;

/** Finds what players count differently in a timeline: nothing, and segments that begin in others. */
function checkTimeline(timeline: XmlElement, found: Report): void {
  const entries = childrenOf(timeline, 'S');
  if (entries.length === 0) found(timeline.start, '<SegmentTimeline> without <S>');
  let [clock, before] = [0, 0];
  for (const [index, { attributes, start: at }] of entries.entries()) {
    const time = Number(attributes.get('t') ?? clock);
    // Writers round times that their sources have rounded before.
    if (time < clock - before * MAX_OVERLAP) found(at, '<S> begins before the end of the one above it');
    if (attributes.get('r') === '-1' && entries[index + 1]?.attributes.has('t') === false) {
      found(at, '<S> repeats until the next one, which does not say when it begins');
    }
    const [duration, count] = [Number(attributes.get('d')), Math.max(Number(attributes.get('r') ?? 0), 0) + 1];
    clock = time + duration * count;
    before = duration;
    if (
      clock > Number.MAX_SAFE_INTEGER &&
      !areDoubles(attributes.get('t') ?? String(time), attributes.get('d') ?? '', clock)
    ) {
      found(at, '<S> has times that are no doubles, and some players round them');
    }
    if (clock >= MAX_TICKS) found(at, '<S> has times that some players cannot hold');
  }
}

/** Returns true where a time and a duration are multiples of the distance between doubles at the end that they lead to. */
function areDoubles(time: string, duration: string, end: number): boolean {
  const distance = 2n ** BigInt(Math.floor(Math.log2(end)) - 52);
  return [time, duration].every((ticks) => /^\d{1,20}$/.test(ticks) && BigInt(ticks) % distance === 0n);
}

/** Finds segments that are addressed in two ways, by one element or by what it inherits. Returns what is inherited from it. */
function checkAddressing(element: XmlElement, around: Addressing, found: Report): Addressing {
  const { name, attributes, childrenByName, start } = element;
  const single = [...SCHEMES, 'SegmentTimeline', 'Initialization'];
  const own = SCHEMES.filter((each) => childrenByName.has(each));
  const schemes = new Set([...around.schemes, ...own]);
  if (single.some((each) => childrenOf(element, each).length > 1) || (own.length > 0 && schemes.size > 1)) {
    found(start, `<${name}> addresses its segments twice`);
  }
  if (
    name === 'Representation' &&
    around.schemes.has('SegmentList') &&
    childrenByName.has('BaseURL') &&
    own.length === 0
  ) {
    found(start, 'it inherits a list of segments, and some players play what its base address names instead');
  }
  const elements = own.flatMap((each) => childrenOf(element, each));
  const times = namesIn(elements, ['duration'], ['SegmentTimeline']);
  const urls = namesIn(elements, [], ['SegmentURL']);
  const inits = namesIn(elements, ['initialization'], ['Initialization']);
  // Players append what an element has of these to what it inherits, or take either.
  const isCombined =
    (times.has('SegmentTimeline') && around.times.size > 0) ||
    (times.has('duration') && around.times.has('SegmentTimeline')) ||
    times.size > 1 ||
    (urls.size > 0 && around.urls.size > 0) ||
    new Set([...inits, ...(inits.size > 0 ? around.inits : [])]).size > 1;
  if (isCombined) found(start, `<${name}> says twice when its segments begin, or which they are`);
  const isCounted = around.isCounted || elements.some(({ attributes }) => COUNTED.test(attributes.get('media') ?? ''));
  const allTimes = new Set([...around.times, ...times]);
  const hasEnd =
    around.hasEnd || ENDS.get(name)?.some((each) => attributes.has(each)) || attributes.get('type') === 'dynamic';
  const hasCount = allTimes.has('SegmentTimeline') || (allTimes.has('duration') && hasEnd);
  if (name === 'Representation' && isCounted && !hasCount) {
    found(start, 'its segments are numbered, and nothing says how many there are');
  }
  return {
    schemes,
    isCounted,
    hasEnd,
    times: allTimes,
    urls: new Set([...around.urls, ...urls]),
    inits: new Set([...around.inits, ...inits]),
  };
}

/** Returns those of the names that an element has an attribute or a child of. */
function namesIn(
  elements: readonly XmlElement[],
  attributes: readonly string[],
  children: readonly string[],
): Set<string> {
  return new Set([
    ...attributes.filter((name) => elements.some((element) => element.attributes.has(name))),
    ...children.filter((name) => elements.some((element) => element.childrenByName.has(name))),
  ]);
}

/** Elements that inherit addresses from the one around them. */
const PARTS: ReadonlySet<string> = new Set(['Period', 'AdaptationSet', 'Representation']);
/** The elements that address segments, of which a representation has one. */
const SCHEMES = ['SegmentBase', 'SegmentList', 'SegmentTemplate'];
