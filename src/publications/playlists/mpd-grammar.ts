import type { PlaylistFinding } from './hls-grammar.ts';
import { LineIndex, parseXml, type XmlElement } from './xml-element.ts';

/** The attributes of an element, and the elements of MPEG that it may hold. */
interface ElementGrammar {
  readonly attributes: ReadonlySet<string>;
  readonly children: ReadonlySet<string>;
  readonly hasText: boolean;
}

const words = (text: string): string[] => text.split(' ').filter((word) => word !== '');

const COMMON =
  'profiles width height sar frameRate audioSamplingRate mimeType segmentProfiles codecs supplementalCodecs containerProfiles maximumSAPPeriod startWithSAP maxPlayoutRate codingDependency scanType selectionPriority tag';
const DESCRIPTORS =
  'Role Accessibility Rating Viewpoint EssentialProperty SupplementalProperty FramePacking AudioChannelConfiguration ContentProtection InbandEventStream OutputProtection Label GroupLabel ProducerReferenceTime RandomAccess Switching ContentAuthenticity';
const SEGMENTS = 'BaseURL SegmentBase SegmentList SegmentTemplate';
const SEGMENT_BASE =
  'timescale presentationTimeOffset eptDelta pdDelta presentationDuration timeShiftBufferDepth indexRange indexRangeExact availabilityTimeOffset availabilityTimeComplete';
const SEGMENT_LISTS = `${SEGMENT_BASE} duration startNumber endNumber`;
const SEGMENT_CHILDREN = 'Initialization RepresentationIndex SegmentTimeline BitstreamSwitching';

/** The elements of an MPD (ISO/IEC 23009-1 §5.3) with their attributes and the elements in them. */
const ELEMENTS: ReadonlyMap<string, ElementGrammar> = new Map(
  Object.entries({
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
  }).map(([name, [attributes = '', children = '']]): [string, ElementGrammar] => [
    name,
    { attributes: new Set(words(attributes)), children: new Set(words(children)), hasText: false },
  ]),
);
const TEXTS: ReadonlyMap<string, ElementGrammar> = new Map(
  ['BaseURL', 'Label', 'GroupLabel', 'Title', 'Source', 'Copyright', 'Location', 'PatchLocation'].map((name) => [
    name,
    {
      attributes: new Set(words('id lang serviceLocation byteRange availabilityTimeOffset availabilityTimeComplete')),
      children: new Set<string>(),
      hasText: true,
    },
  ]),
);
/** Elements whose content says nothing of what plays: descriptors, events, information about the programme. */
const OPAQUE: ReadonlySet<string> = new Set([
  ...words(DESCRIPTORS).filter((name) => !TEXTS.has(name)),
  ...words(
    'ProgramInformation ServiceDescription UTCTiming AssetIdentifier LeapSecondInformation EventStream Reporting',
  ),
  ...words('ContentSteering Preselection InitializationSet ExtendedBandwidth'),
]);

/** Attributes of elements that say what plays. */
const KNOWN_ATTRIBUTES: ReadonlySet<string> = new Set([...ELEMENTS.values()].flatMap(({ attributes }) => [...attributes]));

/** Schemes by which players fetch something else than the addresses of the MPD (chaining, fallbacks, alternatives, parameters). */
const LEADS_ELSEWHERE =
  /^urn:mpeg:dash:(?:chaining|fallback|urlparam|event:alternative|event:callback|mpd-linking|resource-linking)/i;
/** Schemes of descriptors that change nothing that plays, or what every player knows. */
const KNOWN_SCHEME =
  /^urn:(?:mpeg:dash:|mpeg:mpegB:|mpeg:cicp|dvb:|scte:|dolby:|dts:|tva:|com:dashif|uuid:)|^tag:|^http:\/\/dashif\.org\/|^https?:\/\/(?:www\.)?(?:dts|dolby)\.|^about:html-kind/i;

/**
 * Finds what of an MPD is not in the strict grammar of ISO/IEC 23009-1, or what players read differently, and names outside the
 * table. Throws where it is no XML.
 */
export function checkMpdGrammar(text: string): PlaylistFinding[] {
  const lines = new LineIndex(text);
  const findings: PlaylistFinding[] = [];
  const found = (at: number, kind: PlaylistFinding['kind'], problem: string): void =>
    void findings.push({ line: lines.lineAt(at), kind, problem });
  for (const { index, 0: markup, groups } of text.matchAll(MARKUP)) {
    const { prefix, local, attribute, entity } = groups ?? {};
    if (attribute !== undefined) {
      if (KNOWN_ATTRIBUTES.has(attribute)) found(index, 'ambiguous', `${markup.trim()} has a prefix, which some players pass over`);
    } else if (prefix !== undefined && local !== undefined) {
      if (isOfMpeg(local)) found(index, 'ambiguous', `<${prefix}${local}> has a prefix, which some players pass over`);
    } else if (entity === undefined || !/^(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos)$/.test(entity)) {
      found(index, 'ambiguous', `${markup.slice(0, 20)} is read differently by players`);
    }
  }
  const root = parseXml('', text);
  checkElement(root, 'MPD', found);
  return findings;
}

/** Tags and attributes with a prefix, references to entities, sections of text, and instructions behind the declaration. */
const MARKUP =
  /<(?<prefix>[\w.-]+:)(?<local>[\w.-]+)|\s(?!xmlns:)[\w.-]+:(?<attribute>[\w.-]+)\s*=|&(?<entity>[^;\s<]{0,20});?|<!\[CDATA\[|<\?(?!xml\s)/g;

function isOfMpeg(name: string): boolean {
  return ELEMENTS.has(name) || TEXTS.has(name) || OPAQUE.has(name);
}

type Report = (at: number, kind: PlaylistFinding['kind'], problem: string) => void;

function checkElement(element: XmlElement, expected: string | null, found: Report): void {
  const { name, attributes, children, text, start } = element;
  if (expected !== null && name !== expected) found(start, 'ambiguous', `its root element is ${name}`);
  if (/^(?:Location|PatchLocation|ContentSteering)$/.test(name)) {
    found(start, 'unsigned', `<${name}> has players load from elsewhere`);
  }
  const scheme = attributes.get('schemeIdUri');
  if (scheme !== undefined && LEADS_ELSEWHERE.test(scheme)) {
    found(start, 'unsigned', `<${name}> leads players elsewhere (${scheme})`);
  } else if (scheme !== undefined && name === 'EssentialProperty' && !KNOWN_SCHEME.test(scheme)) {
    found(start, 'unknown', `EssentialProperty ${scheme}`);
  }
  if (OPAQUE.has(name)) return;
  const grammar = ELEMENTS.get(name) ?? TEXTS.get(name);
  if (grammar === undefined) return found(start, 'unknown', `<${name}>`);
  if (!grammar.hasText && text !== '') found(start, 'ambiguous', `<${name}> holds text`);
  for (const attribute of attributes.keys()) {
    if (grammar.attributes.has(attribute) || /^(?:xmlns|xsi|xml$)/.test(attribute)) continue;
    // Some players have every element inherit every attribute of those around it.
    if (KNOWN_ATTRIBUTES.has(attribute)) found(start, 'ambiguous', `<${name}> has no ${attribute}`);
    else found(start, 'unknown', `${attribute} of <${name}>`);
  }
  if ((element.childrenByName.get('BaseURL')?.length ?? 0) > 1) {
    found(start, 'unsigned', `<${name}> has a second base address`);
  }
  if (name === 'Initialization' && !attributes.has('sourceURL') && !attributes.has('range')) {
    found(start, 'ambiguous', '<Initialization> names nothing');
  }
  const schemes = ['SegmentBase', 'SegmentList', 'SegmentTemplate', 'SegmentTimeline', 'Initialization'];
  const several = schemes.filter((each) => (element.childrenByName.get(each)?.length ?? 0) > 1);
  const addressing = schemes.slice(0, 3).filter((each) => element.childrenByName.has(each));
  if (several.length > 0 || addressing.length > 1) found(start, 'ambiguous', `<${name}> addresses its segments twice`);
  for (const child of children) {
    if (isOfMpeg(child.name) && !grammar.children.has(child.name)) {
      found(child.start, 'ambiguous', `<${child.name}> cannot stand in <${name}>`);
    }
    checkElement(child, null, found);
  }
}
