import assert from 'node:assert/strict';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { SignedPart, SignedParts } from '../fragments/signed-part.ts';
import { partKey } from '../media-part.ts';
import { innermostAttribute } from '../playlists/mpd-timeline.ts';
import type { MpdDocument, MpdRepresentation } from '../playlists/playlist-document.ts';
import type { SegmentIndex } from '../playlists/sidx.ts';
import { childOf, childrenOf, type XmlElement } from '../playlists/xml-element.ts';
import { addedRates, type GrownSegment } from './added-rates.ts';
import {
  appendInside,
  applyEdits,
  editAttributes,
  elementName,
  escapeXml,
  indentOf,
  relativeReference,
  removeElement,
  type TextEdit,
} from './xml-edits.ts';

const ON_DEMAND_PROFILE = 'urn:mpeg:dash:profile:isoff-on-demand:2011';
const LIVE_PROFILE = 'urn:mpeg:dash:profile:isoff-live:2011';

/** Attributes that speak of subsegments, and what they are called for segments (ISO/IEC 23009-1, §5.3.3.2). */
const SUBSEGMENT_ATTRIBUTES = {
  subsegmentAlignment: 'segmentAlignment',
  subsegmentStartsWithSAP: 'startWithSAP',
} as const;

/**
 * Rewrites an MPD: @bandwidth rises by what signing added, unless files are named by it, and representations that were
 * byte ranges of one file become separate segments. Every other character stays.
 */
export function rewriteMpd(document: MpdDocument, parts: SignedParts): string {
  // Lists of edits, because a call cannot take the hundred thousand arguments that one list may have.
  const edits: (readonly TextEdit[])[] = [];
  const relocated = new Set<XmlElement>();
  for (const representation of document.representations) {
    edits.push(raiseBandwidth(document, representation, parts));
    const rewrite = rewriteOf(document, representation, parts);
    if (rewrite === null) continue;
    relocated.add(representation.lineage[3]);
    edits.push(representation.addressing === 'base' ? editIndexed(rewrite) : editSegmentList(rewrite));
  }
  edits.push(editSurroundings(document, relocated));
  return applyEdits(document.text, edits.flat());
}

function raiseBandwidth(
  { text }: MpdDocument,
  { lineage, segments }: MpdRepresentation,
  parts: SignedParts,
): TextEdit[] {
  const bandwidth = lineage[3].attributes.get('bandwidth');
  const grown: GrownSegment[] = segments.map(({ part, durationSeconds }) => ({
    durationSeconds: durationSeconds ?? 0,
    addedBytes: parts.get(partKey(part))?.addedBytes ?? 0,
  }));
  const { peak } = addedRates(grown);
  if (peak === 0 || bandwidth === undefined || !/^\d{1,15}$/.test(bandwidth)) return [];
  if (namesFilesByBandwidth(lineage)) return [];
  return editAttributes(text, lineage[3], { bandwidth: String(Number(bandwidth) + peak) });
}

/** Returns true when a template names files by `$Bandwidth$`: there are none for another number. */
function namesFilesByBandwidth(lineage: MpdRepresentation['lineage']): boolean {
  return lineage.some((element) => {
    const template = childOf(element, 'SegmentTemplate');
    return template !== undefined && [...template.attributes.values()].some((value) => value.includes('$Bandwidth'));
  });
}

/** Plans the edits of a representation; null where its parts stay where they are. */
function rewriteOf(
  document: MpdDocument,
  representation: MpdRepresentation,
  parts: SignedParts,
): RepresentationRewrite | null {
  const { init, segments, outerBase, playlist, line } = representation;
  if (init === null || !statesRanges(representation)) return null;
  const signedInit = parts.get(partKey(init));
  const fragments = segments.map(({ part }) => parts.get(partKey(part))).filter((part) => part !== undefined);
  if (signedInit === undefined || fragments.length !== segments.length) return null;
  // References are relative to it once the representation has no BaseURL of its own.
  const base = document.index.pathOf(outerBase, outerBase.url.href, { playlist, line });
  return {
    document,
    representation,
    init: signedInit,
    fragments,
    referenceTo: (path) => relativeReference(base, path),
  };
}

/** Returns true when a representation is addressed by byte ranges, even if they cover whole files. */
function statesRanges({ addressing, init, segments, lineage }: MpdRepresentation): boolean {
  if ([init, ...segments.map(({ part }) => part)].some((part) => part?.range != null)) return true;
  const lists = addressing === 'list' ? lineage.flatMap((element) => childOf(element, 'SegmentList') ?? []) : [];
  return lists.some(
    (list) =>
      childOf(list, 'Initialization')?.attributes.has('range') === true ||
      childrenOf(list, 'SegmentURL').some(({ attributes }) => attributes.has('mediaRange')),
  );
}

/** Replaces SegmentBase and its file by a SegmentTemplate with the timeline that the segment index held. */
function editIndexed(rewrite: RepresentationRewrite): TextEdit[] {
  const { document, representation } = rewrite;
  const { text } = document;
  const [, , , element] = representation.lineage;
  const own = childOf(element, 'SegmentBase');
  const outerIndent = indentOf(text, element);
  const change =
    own === undefined
      ? appendInside(text, element, `  ${templateFor(rewrite, `${outerIndent}  `)}\n${outerIndent}`)
      : { start: own.start, end: own.end, replacement: templateFor(rewrite, indentOf(text, own)) };
  return [...childrenOf(element, 'BaseURL').map((baseUrl) => removeElement(text, baseUrl)), change];
}

/** Edits what stands around the representations: profiles, alignment, and a SegmentBase that none of them uses any more. */
function editSurroundings({ text, representations }: MpdDocument, relocated: ReadonlySet<XmlElement>): TextEdit[] {
  const touched = new Set<XmlElement>();
  const partlyOld = new Set<XmlElement>();
  for (const { lineage } of representations) {
    const set = relocated.has(lineage[3]) ? touched : partlyOld;
    for (const element of lineage) set.add(element);
  }
  return [...touched].flatMap((element) => {
    const edits = editProfiles(text, element);
    if (partlyOld.has(element)) return edits;
    const inherited = element.name === 'Representation' ? undefined : childOf(element, 'SegmentBase');
    const removal = inherited === undefined ? [] : [removeElement(text, inherited)];
    return [...edits, ...editAlignment(text, element), ...removal];
  });
}

function editProfiles(text: string, element: XmlElement): TextEdit[] {
  const profiles = element.attributes
    .get('profiles')
    ?.split(',')
    .map((profile) => profile.trim());
  if (profiles === undefined || !profiles.includes(ON_DEMAND_PROFILE)) return [];
  const others = profiles.filter((profile) => profile !== ON_DEMAND_PROFILE && profile !== LIVE_PROFILE);
  return editAttributes(text, element, { profiles: [LIVE_PROFILE, ...others].join(',') });
}

function editAlignment(text: string, element: XmlElement): TextEdit[] {
  const changes: Record<string, string | null> = {};
  for (const [before, after] of Object.entries(SUBSEGMENT_ATTRIBUTES)) {
    const value = element.attributes.get(before);
    if (value === undefined) continue;
    changes[before] = null;
    if (!element.attributes.has(after)) changes[after] = value;
  }
  return Object.keys(changes).length === 0 ? [] : editAttributes(text, element, changes);
}

/**
 * Returns the SegmentTemplate that takes the place of a SegmentBase: numbered files, and the segment index's durations
 * as a SegmentTimeline. Players know it better than a SegmentList with a timeline.
 */
function templateFor(
  { document, representation, init, fragments, referenceTo }: RepresentationRewrite,
  indent: string,
): string {
  const { index, lineage } = representation;
  assert(index !== undefined, 'the representation was addressed by a segment index');
  const prefix = /^(.*:)?/.exec(elementName(document.text, lineage[3].start))?.[1] ?? '';
  const media = numberedMedia(fragments.map(({ path }) => path));
  if (media === null) {
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist: document.path,
      line: representation.line,
      feature: 'A file whose byte ranges another playlist names in another way',
      remedy: 'Make the playlists agree on where fragments begin and end.',
    });
  }
  const attributes = {
    timescale: String(index.timescale),
    ...presentationTimeOffset(lineage, index.timescale),
    initialization: escapeTemplate(referenceTo(init.path)),
    media: escapeTemplate(referenceTo(media.folder)) + media.template,
    startNumber: String(media.first),
  };
  const list = Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join('');
  const entries = timelineEntries(index);
  return [
    `<${prefix}SegmentTemplate${list}>`,
    `${indent}  <${prefix}SegmentTimeline>`,
    ...entries.map((entry) => `${indent}    <${prefix}S ${entry}/>`),
    `${indent}  </${prefix}SegmentTimeline>`,
    `${indent}</${prefix}SegmentTemplate>`,
  ].join('\n');
}

/** Returns the numbers that new files carry as one template, or null where they do not follow one another. */
function numberedMedia(paths: readonly string[]): { folder: string; template: string; first: number } | null {
  const matches = paths.map((path) => /^(.*\/)(\d+)(\.[^./]*)$/.exec(path));
  const [, folder = '', digits = '1', extension = ''] = matches[0] ?? [];
  const first = Number(digits);
  for (const [position, match] of matches.entries()) {
    if (match?.[1] !== folder || Number(match[2]) !== first + position) return null;
  }
  return { folder, template: `$Number%0${digits.length}d$${extension}`, first };
}

function escapeTemplate(reference: string): string {
  return reference.replaceAll('$', '$$$$');
}

/**
 * Converts SegmentBase@presentationTimeOffset, which counts on SegmentBase@timescale, to the timescale of the index,
 * which the timeline counts on.
 */
function presentationTimeOffset(
  lineage: MpdRepresentation['lineage'],
  timescale: number,
): { presentationTimeOffset?: string } {
  const bases = lineage.flatMap((element) => childrenOf(element, 'SegmentBase'));
  const offset = innermostAttribute(bases, 'presentationTimeOffset');
  const own = innermostAttribute(bases, 'timescale') ?? '1';
  if (offset === undefined || !/^\d{1,20}$/.test(offset) || !/^[1-9]\d{0,10}$/.test(own)) return {};
  return { presentationTimeOffset: String((BigInt(offset) * BigInt(timescale)) / BigInt(own)) };
}

/** Writes `S` entries, runs of equal durations as one. */
function timelineEntries({ startTicks, subsegments }: SegmentIndex): string[] {
  const runs: { duration: number; count: number }[] = [];
  for (const { durationTicks: duration } of subsegments) {
    const last = runs.at(-1);
    if (last?.duration === duration) last.count += 1;
    else runs.push({ duration, count: 1 });
  }
  return runs.map(({ duration, count }, position) => {
    const start = position === 0 ? `t="${startTicks}" ` : '';
    const repeat = count === 1 ? '' : ` r="${count - 1}"`;
    return `${start}d="${duration}"${repeat}`;
  });
}

/** Turns a SegmentList of byte ranges into one of files; durations and all else stay as they are. */
function editSegmentList(rewrite: RepresentationRewrite): TextEdit[] {
  const { document, representation, init, fragments, referenceTo } = rewrite;
  const { text, path } = document;
  const element = representation.lineage[3];
  const list = childOf(element, 'SegmentList');
  const initialization = list && childOf(list, 'Initialization');
  const urls = list && childrenOf(list, 'SegmentURL');
  if (list === undefined || initialization === undefined || urls?.length !== fragments.length) {
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist: path,
      line: representation.line,
      feature: 'A SegmentList of byte ranges that a Representation does not hold itself',
      remedy: 'Write the list into each Representation.',
    });
  }
  return [
    ...childrenOf(element, 'BaseURL').map((baseUrl) => removeElement(text, baseUrl)),
    ...childrenOf(list, 'RepresentationIndex').map((index) => removeElement(text, index)),
    ...editAttributes(text, initialization, { sourceURL: referenceTo(init.path), range: null }),
    ...fragments.flatMap(({ path: media }, position) =>
      editAttributes(text, itemAt(urls, position), { media: referenceTo(media), mediaRange: null, indexRange: null }),
    ),
  ];
}

/** A representation whose byte ranges became files. */
interface RepresentationRewrite {
  readonly document: MpdDocument;
  readonly representation: MpdRepresentation;
  readonly init: SignedPart;
  readonly fragments: readonly SignedPart[];
  /** Returns the reference, relative to where the representation's references start, to a path of the output. */
  referenceTo(path: string): string;
}
