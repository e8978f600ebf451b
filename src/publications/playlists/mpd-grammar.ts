import { PLAYED_PROPERTIES } from './mpd-kinds.ts';
import type { MpdDocument } from './playlist-document.ts';
import { ODD_CHARACTER, type PlaylistFinding } from './playlist-finding.ts';
import type { XmlElement } from './xml-element.ts';

/** The attributes of an element, and the elements of MPEG that it may hold. */
interface ElementGrammar {
  readonly attributes: ReadonlySet<string>;
  readonly children: ReadonlySet<string>;
  readonly hasText: boolean;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' ').filter((word) => word !== ''));

const COMMON =
  'profiles width height sar frameRate audioSamplingRate mimeType segmentProfiles codecs supplementalCodecs containerProfiles maximumSAPPeriod startWithSAP maxPlayoutRate codingDependency scanType selectionPriority tag';
const DESCRIPTORS =
  'Role Accessibility Rating Viewpoint EssentialProperty SupplementalProperty FramePacking AudioChannelConfiguration ContentProtection InbandEventStream OutputProtection Label GroupLabel ProducerReferenceTime RandomAccess Switching ContentAuthenticity';
const SEGMENTS = 'BaseURL SegmentBase SegmentList SegmentTemplate';
const SEGMENT_BASE =
  'timescale presentationTimeOffset eptDelta pdDelta presentationDuration timeShiftBufferDepth indexRange indexRangeExact availabilityTimeOffset availabilityTimeComplete';
const SEGMENT_LISTS = `${SEGMENT_BASE} duration startNumber endNumber`;
const SEGMENT_CHILDREN = 'Initialization RepresentationIndex SegmentTimeline BitstreamSwitching';

const BASE_URL = 'serviceLocation byteRange availabilityTimeOffset availabilityTimeComplete';

/** The elements of an MPD (ISO/IEC 23009-1 §5.3) with their attributes and the elements in them, which is null where they hold text. */
const ELEMENTS: ReadonlyMap<string, ElementGrammar> = new Map(
  Object.entries<readonly [attributes: string, children: string | null]>({
    MPD: [
      'id profiles type availabilityStartTime availabilityEndTime publishTime mediaPresentationDuration minimumUpdatePeriod minBufferTime timeShiftBufferDepth suggestedPresentationDelay maxSegmentDuration maxSubsegmentDuration schemaLocation',
      'ProgramInformation BaseURL Location PatchLocation ServiceDescription InitializationSet Period Metrics EssentialProperty SupplementalProperty UTCTiming LeapSecondInformation ContentSteering ContentProtection ContentAuthenticity',
    ],
    Period: [
      'id start duration bitstreamSwitching',
      `${SEGMENTS} AssetIdentifier EventStream ServiceDescription AdaptationSet Subset SupplementalProperty EssentialProperty EmptyAdaptationSet GroupLabel Preselection ContentProtection`,
    ],
    AdaptationSet: [
      `${COMMON} id group lang contentType par minBandwidth maxBandwidth minWidth maxWidth minHeight maxHeight minFrameRate maxFrameRate segmentAlignment subsegmentAlignment subsegmentStartsWithSAP bitstreamSwitching initializationSetRef initializationPrincipal`,
      `${DESCRIPTORS} ${SEGMENTS} ContentComponent Representation`,
    ],
    Representation: [
      `${COMMON} id bandwidth qualityRanking dependencyId associationId associationType mediaStreamStructureId`,
      `${DESCRIPTORS} ${SEGMENTS} SubRepresentation ExtendedBandwidth`,
    ],
    SubRepresentation: [`${COMMON} level dependencyLevel bandwidth contentComponent`, DESCRIPTORS],
    ContentComponent: ['id lang contentType par tag', 'Accessibility Role Rating Viewpoint'],
    SegmentTemplate: [`${SEGMENT_LISTS} media index initialization bitstreamSwitching`, SEGMENT_CHILDREN],
    SegmentList: [SEGMENT_LISTS, `${SEGMENT_CHILDREN} SegmentURL`],
    SegmentBase: [SEGMENT_BASE, 'Initialization RepresentationIndex'],
    SegmentTimeline: ['', 'S'],
    S: ['t n d r k', ''],
    SegmentURL: ['media mediaRange index indexRange', ''],
    Initialization: ['sourceURL range', ''],
    RepresentationIndex: ['sourceURL range', ''],
    BitstreamSwitching: ['sourceURL range', ''],
    Metrics: ['metrics', 'Range Reporting'],
    Range: ['starttime duration', ''],
    Subset: ['id contains', ''],
    EmptyAdaptationSet: [`${COMMON} id`, DESCRIPTORS],
    BaseURL: [BASE_URL, null],
    Location: [BASE_URL, null],
    PatchLocation: [`${BASE_URL} ttl`, null],
    Label: ['id lang', null],
    GroupLabel: ['id lang', null],
    Title: ['', null],
    Source: ['', null],
    Copyright: ['', null],
  }).map(([name, [attributes, children]]): [string, ElementGrammar] => [
    name,
    { attributes: words(attributes), children: words(children ?? ''), hasText: children === null },
  ]),
);
/** Attributes without which players take those of an element around it. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = { Representation: ['id', 'bandwidth'], S: ['d'] };
/** Elements whose content says nothing of what plays: descriptors, events, information about the programme. */
const OPAQUE: ReadonlySet<string> = new Set([
  ...[...words(DESCRIPTORS)].filter((name) => !ELEMENTS.has(name)),
  ...words('ProgramInformation ServiceDescription UTCTiming AssetIdentifier LeapSecondInformation EventStream'),
  ...words('Reporting ContentSteering Preselection InitializationSet ExtendedBandwidth'),
]);

/** Names under which players keep what they read beside the attributes, so that an attribute replaces it. */
const KEPT_BY_PLAYERS =
  'baseUrl segmentUrls sourceDuration periodStart periodDuration presentationTime number clientOffset NOW role label';
/** Attributes of elements that say what plays, in small letters. */
const KNOWN_ATTRIBUTES: ReadonlySet<string> = new Set(
  [...ELEMENTS.values()]
    .flatMap(({ attributes, hasText }) => (hasText ? [] : [...attributes]))
    .concat(...words(KEPT_BY_PLAYERS))
    .map((name) => name.toLowerCase()),
);

const INTEGER = /^(?:0|[1-9]\d{0,14})$/;
/** A time, which in live streams may not fit a double. */
const TIME = /^(?:0|[1-9]\d{0,19})$/;
const POSITIVE = /^[1-9]\d{0,14}$/;
const BYTES = /^\d{1,15}-\d{1,15}$/;
/** Values of attributes by which segments are counted and cut; players read others in several ways. */
const VALUES: Readonly<Record<string, RegExp>> = {
  contentType: /^(?:video|audio|text|image|application|font)$/,
  bandwidth: INTEGER,
  type: /^(?:static|dynamic)$/,
  timescale: POSITIVE,
  presentationTimeOffset: TIME,
  startNumber: INTEGER,
  endNumber: INTEGER,
  mediaRange: BYTES,
  range: BYTES,
  indexRange: BYTES,
  t: TIME,
  d: POSITIVE,
  r: /^(?:-1|0|[1-9]\d{0,8})$/,
};

/** Schemes by which players fetch something else than the addresses of the MPD (chaining, fallbacks, alternatives, parameters). */
const LEADS_ELSEWHERE =
  /^urn:(?:mpeg:dash:(?:chaining|fallback|urlparam|event:alternative|event:callback|mpd-linking|resource-linking)|dvb:dash:fontdownload)/i;
/** Schemes by which some players play fewer segments, or none. */
const CUTS = /^http:\/\/dashif\.org\/guidelines\/last-segment-number/i;
/** Essential properties that they know: also those of key frames and of pictures for seek bars, which do not play as media. */
const KNOWN_PROPERTIES: ReadonlySet<string> = new Set([
  ...PLAYED_PROPERTIES,
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
  for (const { index, 0: markup, groups } of text.matchAll(MARKUP)) {
    const { prefix, local, attribute, entity } = groups ?? {};
    if (attribute !== undefined) {
      if (KNOWN_ATTRIBUTES.has(attribute.toLowerCase()) && !QUALIFIED_ATTRIBUTES.has(attribute))
        found(index, `${markup.trim()} has a prefix, which some players pass over`);
    } else if (prefix !== undefined && local !== undefined) {
      if (isOfMpeg(local)) found(index, `<${prefix}${local}> has a prefix, which some players pass over`);
    } else if (entity === undefined || !/^(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos)$/.test(entity)) {
      found(index, `${markup.slice(0, 20)} is read differently by players`);
    }
  }
  for (const { index, 0: written, 1: name = '', 2: value = '' } of text.matchAll(ATTRIBUTE)) {
    if (!QUALIFIED_NAME.test(name)) found(index, `${name.slice(0, 60)} is no name of an attribute`);
    if (
      value.includes('&') &&
      !FILE_ADDRESSES.has(name) &&
      (KNOWN_ATTRIBUTES.has(name.toLowerCase()) || name === 'schemeIdUri')
    ) {
      found(index, `${name} has a reference to a character, which some players do not replace`);
    }
    if (KNOWN_ATTRIBUTES.has(name.toLowerCase()) && /^.\s|\s.$|[\t\r\n]/.test(value)) {
      found(index, `${written.trim().slice(0, 60)} has white space, which some players take as a part of it`);
    }
  }
  for (const { index, 1: name = '', 2: namespace = '' } of text.matchAll(NAMESPACE)) {
    if (isOfMpeg(name) && !/^.urn:mpeg:dash:schema:mpd:/i.test(namespace)) {
      found(index, `<${name}> is in another namespace, which some players pass over`);
    }
  }
  const odd = oddCharacterIn(text);
  if (odd !== null) found(odd, 'a character is white space for some players, or no text');
  checkElement(root, found, AT_ROOT);
  checkIdentifiers(root, found);
  return findings;
}

/** Finds identifiers that stand twice where they must not: players then take one element for the other, or refuse both. */
function checkIdentifiers(root: XmlElement, found: Report): void {
  const periods = root.childrenByName.get('Period') ?? [];
  const sets = periods.map(({ childrenByName }) => childrenByName.get('AdaptationSet') ?? []);
  const representations = sets.map((each) => each.flatMap((set) => set.childrenByName.get('Representation') ?? []));
  for (const scope of [periods, ...sets, ...representations]) {
    const taken = new Set<string>();
    for (const { name, attributes, start } of scope) {
      const id = attributes.get('id');
      if (id !== undefined && taken.has(id)) found(start, `<${name}> has the id of another one`);
      if (id !== undefined) taken.add(id);
    }
  }
}

/** Tags and attributes with a prefix, references to entities, comments that end at once for some, sections of text, and instructions. */
const MARKUP =
  /<(?<prefix>[^\s<>"'=/]*:)(?<local>[\w.-]+)|\s(?!xmlns:|xsi:)[^\s<>"'=/]*:(?<attribute>[\w.-]+)\s*=|&(?<entity>[^;\s<]{0,20});?|<!--(?=-?>)|<!\[CDATA\[|<\?(?!xml\s)/g;

/** Attributes that SCTE 214-1 defines in its namespace, as ISO/IEC 23009-1 does without one: they say which codecs there are. */
const QUALIFIED_ATTRIBUTES: ReadonlySet<string> = new Set(['supplementalCodecs', 'supplementalProfiles']);

/** An element and its default namespace, quotes included. */
const NAMESPACE = /<([\w.-]+)\s(?:[^<>]*?\s)?xmlns\s*=\s*("[^"<]*"|'[^'<]*')/g;
/** A name with a prefix at most. Some players pass over what stands before the first letter. */
const QUALIFIED_NAME = /^[A-Za-z][\w.-]*(?::[A-Za-z_][\w.-]*)?$/;
/** An attribute and its value, quotes included. */
const ATTRIBUTE = /\s([^\s"'<>=/]+)\s*=\s*("[^"<]*"|'[^'<]*')/g;
/** A character that XML does not allow, or that some parsers take for white space, or leave out. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const ODD_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0085\u2028\u2029\ufeff]/;

/** Returns the position of a character that parsers take for different things, at least where it stands; null where there is none. */
function oddCharacterIn(text: string): number | null {
  const at = text.slice(1).search(ODD_IN_XML);
  if (at !== -1) return at + 1;
  for (const { index, 0: tag } of text.matchAll(/<[^!<>][^<>]*>/g)) {
    if (/^<\/.*\s>$/s.test(tag) || ODD_CHARACTER.test(tag.replace(/"[^"]*"|'[^']*'|[\t\r\n]/g, ''))) return index;
  }
  return null;
}

function isOfMpeg(name: string): boolean {
  return ELEMENTS.has(name) || OPAQUE.has(name);
}

type Report = (at: number, problem: string, kind?: PlaylistFinding['kind']) => void;

/** An addressing scheme as far as the elements around an element say it. */
interface Addressing {
  readonly schemes: ReadonlySet<string>;
  /** The element that says when segments begin, which they are, and which the init segment is. */
  readonly times: ReadonlySet<string>;
  readonly urls: ReadonlySet<string>;
  readonly inits: ReadonlySet<string>;
}

const AT_ROOT: Addressing = { schemes: new Set(), times: new Set(), urls: new Set(), inits: new Set() };

function checkElement(element: XmlElement, found: Report, around: Addressing): void {
  const { name, children, text, start } = element;
  checkTarget(element, found);
  if (OPAQUE.has(name)) return;
  const grammar = ELEMENTS.get(name);
  if (grammar === undefined) return found(start, `<${name}>`, 'unknown');
  if (!grammar.hasText && text !== '') found(start, `<${name}> holds text`);
  if (grammar.hasText && children.length > 0) found(start, `<${name}> holds elements`);
  if (name === 'BaseURL' && (ODD_CHARACTER.test(text) || ODD_ADDRESS.test(text))) {
    found(start, 'an address that players and servers read differently');
  }
  checkAttributes(element, grammar, found);
  if ((element.childrenByName.get('BaseURL')?.length ?? 0) > 1) {
    found(start, `<${name}> has a second base address`, 'unsigned');
  }
  if (name === 'SegmentTimeline') checkTimeline(element, found);
  const addressing = checkAddressing(element, around, found);
  for (const child of children) {
    if (isOfMpeg(child.name) && !grammar.children.has(child.name)) {
      found(child.start, `<${child.name}> cannot stand in <${name}>`);
    }
    checkElement(child, found, addressing);
  }
}

/** Finds elements that lead players elsewhere. */
function checkTarget({ name, attributes, start }: XmlElement, found: Report): void {
  if (/^(?:Location|PatchLocation|ContentSteering|RequestParam|RepresentationIndex|BitstreamSwitching)$/.test(name)) {
    found(start, `<${name}> has players load from elsewhere`, 'unsigned');
  }
  const scheme = attributes.get('schemeIdUri');
  if (scheme !== undefined && LEADS_ELSEWHERE.test(scheme)) {
    found(start, `<${name}> leads players elsewhere (${scheme})`, 'unsigned');
  } else if (scheme !== undefined && CUTS.test(scheme)) {
    found(start, `<${name}> has some players leave out segments (${scheme})`);
  } else if (scheme !== undefined && name === 'EssentialProperty' && !KNOWN_PROPERTIES.has(scheme)) {
    found(start, `EssentialProperty ${scheme}`, 'unknown');
  }
}

function checkAttributes({ name, attributes, start }: XmlElement, grammar: ElementGrammar, found: Report): void {
  for (const [attribute, value] of attributes) {
    if (grammar.attributes.has(attribute)) {
      if (
        ODD_CHARACTER.test(value) ||
        VALUES[attribute]?.test(value) === false ||
        !isFitDuration(name, attribute, value)
      ) {
        found(start, `${attribute} of <${name}> has another value than it can have`);
      }
      const effect = PASSED_OVER_BY_SOME[attribute];
      if (effect !== undefined) found(start, `${attribute} of <${name}> has some players ${effect}`);
      if (name === 'Representation' && attribute === 'id' && value.includes('$')) {
        found(start, 'id of <Representation> has an identifier of templates, which some players fill');
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
    else found(start, `${attribute} of <${name}>`, 'unknown');
  }
  for (const required of REQUIRED[name] ?? []) {
    if ((attributes.get(required) ?? '') === '') found(start, `<${name}> without ${required}`);
  }
  const reference = REFERENCES[name];
  if (reference?.every((each) => !attributes.has(each))) found(start, `<${name}> names nothing`);
}

/** Attributes that some players pass over, and what it has the others do. */
const PASSED_OVER_BY_SOME: Readonly<Record<string, string>> = {
  index: 'take what plays from an index of its own, and others not',
  endNumber: 'end there, and others go on',
  dependencyId: 'play it with another representation, and others alone',
};

/** Text of an address that players and servers read differently: a backslash, or an encoded slash or end. */
const ODD_ADDRESS = /\\|%(?:2f|5c|00)/i;
/** Attributes that are addresses of files. */
const FILE_ADDRESSES: ReadonlySet<string> = new Set(['media', 'initialization', 'sourceURL']);

/** Attributes by which elements name bytes, of which they have one at least. */
const REFERENCES: Readonly<Record<string, readonly string[]>> = {
  Initialization: ['sourceURL', 'range'],
  SegmentURL: ['media', 'mediaRange'],
};

/** Returns true unless the attribute is a duration of segments, and no number. */
function isFitDuration(name: string, attribute: string, value: string): boolean {
  return attribute !== 'duration' || !name.startsWith('Segment') || POSITIVE.test(value);
}

/** Attributes of SegmentTemplate with identifiers in them. */
const TEMPLATES: ReadonlySet<string> = new Set(['media', 'initialization', 'index']);
/** Text with identifiers, only those of numbers with a width (ISO/IEC 23009-1 §5.3.9.4.4). */
const TEMPLATE = /^(?:[^$]|\$RepresentationID\$|\$(?:Number|Time|Bandwidth)(?:%0\d{1,2}d)?\$)*$/;

/** Finds what players count differently in a timeline: nothing, numbers of its own, and segments that begin in others. */
function checkTimeline({ childrenByName, start }: XmlElement, found: Report): void {
  const entries = childrenByName.get('S') ?? [];
  if (entries.length === 0) found(start, '<SegmentTimeline> without <S>');
  let clock = 0;
  for (const [index, { attributes, start: at }] of entries.entries()) {
    const time = Number(attributes.get('t') ?? clock);
    if (time < clock) found(at, '<S> begins before the end of the one above it');
    if (attributes.has('n')) found(at, '<S> has a number of its own, which some players pass over');
    if (attributes.get('r') === '-1' && entries[index + 1]?.attributes.has('t') === false) {
      found(at, '<S> repeats until the next one, which does not say when it begins');
    }
    clock = time + Number(attributes.get('d')) * (Math.max(Number(attributes.get('r') ?? 0), 0) + 1);
  }
}

/** Finds segments that are addressed in two ways, by one element or by what it inherits. Returns what is inherited from it. */
function checkAddressing(element: XmlElement, around: Addressing, found: Report): Addressing {
  const { name, childrenByName, start } = element;
  const single = [...SCHEMES, 'SegmentTimeline', 'Initialization'];
  const own = SCHEMES.filter((each) => childrenByName.has(each));
  const schemes = new Set([...around.schemes, ...own]);
  if (single.some((each) => (childrenByName.get(each)?.length ?? 0) > 1) || (own.length > 0 && schemes.size > 1)) {
    found(start, `<${name}> addresses its segments twice`);
  }
  const elements = own.flatMap((each) => childrenByName.get(each) ?? []);
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
  return {
    schemes,
    times: new Set([...around.times, ...times]),
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

/** The elements that address segments, of which a representation has one. */
const SCHEMES = ['SegmentBase', 'SegmentList', 'SegmentTemplate'];
