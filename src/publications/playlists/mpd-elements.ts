/** The attributes of an element, and the elements of MPEG that it may hold. */
export interface ElementGrammar {
  readonly attributes: ReadonlySet<string>;
  readonly children: ReadonlySet<string>;
  readonly hasText: boolean;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' ').filter((word) => word !== ''));

const COMMON =
  'profiles width height sar frameRate audioSamplingRate mimeType segmentProfiles codecs supplementalCodecs containerProfiles maximumSAPPeriod startWithSAP maxPlayoutRate codingDependency scanType selectionPriority tag';
const DESCRIPTORS =
  'Role Accessibility Rating Viewpoint EssentialProperty SupplementalProperty FramePacking AudioChannelConfiguration ContentProtection InbandEventStream OutputProtection Label GroupLabel ProducerReferenceTime RandomAccess Switching ContentAuthenticity Resync ContentPopularityRate';
const SEGMENTS = 'BaseURL SegmentBase SegmentList SegmentTemplate';
const SEGMENT_BASE =
  'timescale presentationTimeOffset eptDelta pdDelta presentationDuration timeShiftBufferDepth availabilityTimeOffset availabilityTimeComplete';
const SEGMENT_LISTS = `${SEGMENT_BASE} duration startNumber`;
const SEGMENT_CHILDREN = 'Initialization RepresentationIndex SegmentTimeline BitstreamSwitching';

const BASE_URL = 'serviceLocation byteRange availabilityTimeOffset availabilityTimeComplete';

/** The elements of an MPD (ISO/IEC 23009-1 §5.3) with their attributes and the elements in them, which is null where they hold text. */
export const ELEMENTS: ReadonlyMap<string, ElementGrammar> = new Map(
  Object.entries<readonly [attributes: string, children: string | null]>({
    MPD: [
      'id profiles type availabilityStartTime availabilityEndTime publishTime mediaPresentationDuration minimumUpdatePeriod minBufferTime timeShiftBufferDepth suggestedPresentationDelay maxSegmentDuration maxSubsegmentDuration schemaLocation',
      'ProgramInformation BaseURL Location PatchLocation ServiceDescription InitializationSet Period Metrics EssentialProperty SupplementalProperty UTCTiming LeapSecondInformation ContentSteering ContentProtection ContentAuthenticity',
    ],
    Period: [
      'id start duration bitstreamSwitching',
      `${SEGMENTS} AssetIdentifier EventStream ServiceDescription AdaptationSet SupplementalProperty EssentialProperty EmptyAdaptationSet GroupLabel Preselection ContentProtection`,
    ],
    AdaptationSet: [
      `${COMMON} id group lang contentType par minBandwidth maxBandwidth minWidth maxWidth minHeight maxHeight minFrameRate maxFrameRate segmentAlignment subsegmentAlignment subsegmentStartsWithSAP bitstreamSwitching initializationSetRef initializationPrincipal`,
      `${DESCRIPTORS} ${SEGMENTS} ContentComponent Representation`,
    ],
    Representation: [
      `${COMMON} id bandwidth qualityRanking associationId associationType mediaStreamStructureId`,
      `${DESCRIPTORS} ${SEGMENTS} SubRepresentation ExtendedBandwidth`,
    ],
    SubRepresentation: [`${COMMON} level dependencyLevel bandwidth contentComponent`, DESCRIPTORS],
    ContentComponent: ['id lang contentType par tag', 'Accessibility Role Rating Viewpoint'],
    SegmentTemplate: [`${SEGMENT_LISTS} media initialization bitstreamSwitching`, SEGMENT_CHILDREN],
    SegmentList: [SEGMENT_LISTS, `${SEGMENT_CHILDREN} SegmentURL`],
    // Elsewhere, some players take what plays from the index at this range, in a file that nothing else names.
    SegmentBase: [`${SEGMENT_BASE} indexRange indexRangeExact`, 'Initialization RepresentationIndex'],
    SegmentTimeline: ['', 'S'],
    S: ['t d r k', ''],
    SegmentURL: ['media mediaRange indexRange', ''],
    Initialization: ['sourceURL range', ''],
    RepresentationIndex: ['sourceURL range', ''],
    BitstreamSwitching: ['sourceURL range', ''],
    Metrics: ['metrics', 'Range Reporting'],
    Range: ['starttime duration', ''],
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
export const REQUIRED: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({ Representation: ['id', 'bandwidth'], S: ['d'] }),
);
/** Elements whose content says nothing of what plays: descriptors, events, information about the programme. */
export const OPAQUE: ReadonlySet<string> = new Set([
  ...[...words(DESCRIPTORS)].filter((name) => !ELEMENTS.has(name)),
  ...words('ProgramInformation ServiceDescription UTCTiming AssetIdentifier LeapSecondInformation EventStream'),
  ...words('Reporting ContentSteering Preselection InitializationSet ExtendedBandwidth'),
]);

/** Returns true for the name of an element of MPEG. */
export function isOfMpeg(name: string): boolean {
  return ELEMENTS.has(name) || OPAQUE.has(name);
}

const NAMES_IN_CAPITALS: ReadonlySet<string> = new Set(
  [...ELEMENTS.keys(), ...OPAQUE].map((name) => name.toUpperCase()),
);

/** Returns true for a name that some players, which compare without case, take for that of an element of MPEG. */
export function isTakenForMpeg(name: string): boolean {
  return NAMES_IN_CAPITALS.has(name.toUpperCase());
}

/** Elements inside those: of MPEG, and those of SCTE 35 in events. */
export const INSIDE_OPAQUE: ReadonlySet<string> = new Set([
  ...words('Event Scope Latency PlaybackRate OperatingQuality OperatingBandwidth QualityLatency ClientDataReporting'),
  ...words(
    'CMCDParameters Resync Signal Binary SpliceInfoSection EncryptedPacket SpliceNull SpliceSchedule SpliceInsert',
  ),
  ...words('TimeSignal BandwidthReservation PrivateCommand PrivateBytes SpliceTime BreakDuration Program Component'),
  ...words(
    'AvailDescriptor DTMFDescriptor SegmentationDescriptor SegmentationUpid DeliveryRestrictions TimeDescriptor',
  ),
  ...words('AudioDescriptor AudioChannel PR'),
]);
/** Elements by which some players play something else, less, or at other times, some of them in whatever namespace. */
export const FOLLOWED: ReadonlySet<string> = words(
  'Subset ImportedMPD OverlayEvent AlternativeMPD InsertPresentation ReplacePresentation UrlQueryInfo ExtUrlQueryInfo ExtHttpHeaderInfo RequestParam Pattern SegmentSequenceProperties',
);

/** Names under which parsers that keep attributes and elements beside them know an element. */
export const KEPT_BY_PARSERS: ReadonlySet<string> = words('nodeName localName tagName childNodes');
/** Names under which players keep what they read beside the attributes, so that an attribute replaces it. */
const KEPT_BY_PLAYERS =
  'baseUrl segmentUrls sourceDuration periodStart periodDuration presentationTime number clientOffset NOW role label';
/**
 * Attributes that some players pass over. By the others, what plays is in an index of its own, ends before the rest of it, plays with
 * another representation, or has numbers of its own.
 */
const PASSED_OVER_BY_SOME = 'index endNumber dependencyId n';
/** Attributes of elements that say what plays, in small letters. */
export const KNOWN_ATTRIBUTES: ReadonlySet<string> = new Set(
  [...ELEMENTS.values()]
    .flatMap(({ attributes, hasText }) => (hasText ? [] : [...attributes]))
    .concat(...words(KEPT_BY_PLAYERS), ...words(PASSED_OVER_BY_SOME), ...KEPT_BY_PARSERS)
    .map((name) => name.toLowerCase()),
);

const INTEGER = /^(?:0|[1-9]\d{0,14})$/;
/** A time, which in live streams may not fit a double. */
const TIME = /^(?:0|[1-9]\d{0,19})$/;
/** A number of 32 bits: some players count in no more. */
const UNSIGNED = /^(?:0|[1-9]\d{0,9})$/;
const POSITIVE = /^[1-9]\d{0,14}$/;
/** A rate of frames: players leave out pictures of one below zero. */
const RATE = /^\d{1,10}(?:\.\d{1,20})?(?:\/[1-9]\d{0,9})?$/;
const BYTES = /^\d{1,15}-\d{1,15}$/;
/**
 * Values of attributes, of some elements alone, by which segments are counted and cut; players read others in several ways, and fill
 * identifiers of templates wherever they find them.
 */
export const VALUES: ReadonlyMap<string, RegExp> = new Map(
  Object.entries({
    contentType: /^(?:video|audio|text|image|application|font)$/,
    // Some players look for the kind anywhere in a type.
    mimeType: /^(?:video|audio|text|image|application|font)\/(?!.*(?:video|audio|text|image))[\w.+-]+$/,
    'Representation id': /^[^$]*$/,
    bandwidth: INTEGER,
    frameRate: RATE,
    minFrameRate: RATE,
    maxFrameRate: RATE,
    type: /^(?:static|dynamic)$/,
    timescale: /^[1-9]\d{0,9}$/,
    presentationTimeOffset: TIME,
    startNumber: UNSIGNED,
    mediaRange: BYTES,
    range: BYTES,
    indexRange: BYTES,
    t: TIME,
    d: POSITIVE,
    'SegmentList duration': POSITIVE,
    'SegmentTemplate duration': POSITIVE,
    r: /^(?:-1|0|[1-9]\d{0,8})$/,
  }),
);

/** Attributes that are addresses of files. */
export const FILE_ADDRESSES: ReadonlySet<string> = new Set(['media', 'initialization', 'sourceURL']);
