import { partKey } from '../publication.ts';
import type { FolderIndex } from '../reading/folder-index.ts';
import { enterBaseUrl } from '../reading/mpd-base-url.ts';
import type { MpdDocument, MpdRepresentation } from '../reading/mpd-document.ts';
import { MpdValues } from '../reading/mpd-values.ts';
import { childOf, childrenOf, type XmlElement } from '../reading/xml-element.ts';
import type { SignedParts } from '../signing/signed-part.ts';
import { addedRates, type GrownSegment } from './added-rates.ts';
import { relativeReference } from './relative-reference.ts';
import type { RepresentationRewrite } from './representation-rewrite.ts';
import { editSegmentList } from './rewrite-segment-list.ts';
import { templateFor } from './segment-base-template.ts';
import { applyEdits, type TextEdit } from './text-edits.ts';
import { appendInside, editAttributes, indentOf, removeElement, replaceElement } from './xml-edits.ts';

const ON_DEMAND_PROFILE = 'urn:mpeg:dash:profile:isoff-on-demand:2011';
const LIVE_PROFILE = 'urn:mpeg:dash:profile:isoff-live:2011';

/** Attributes that speak of subsegments, and what they are called for segments (ISO/IEC 23009-1, §5.3.3.2). */
const SUBSEGMENT_ATTRIBUTES = {
  subsegmentAlignment: 'segmentAlignment',
  subsegmentStartsWithSAP: 'startWithSAP',
} as const;

/**
 * Rewrites an MPD: @bandwidth rises by what signing added, unless files are named by it, and representations that were byte ranges of one file become
 * separate segments. Every other character stays.
 */
export function rewriteMpd(document: MpdDocument, index: FolderIndex, parts: SignedParts): string {
  // Lists of edits, because a call cannot take the hundred thousand arguments that one list may have.
  const edits: (readonly TextEdit[])[] = [];
  const laidOutAnew = new Set<XmlElement>();
  for (const representation of document.representations) {
    edits.push(raiseBandwidth(document, representation, parts));
    const rewrite = rewriteOf(document, representation, index, parts);
    if (rewrite === null) continue;
    laidOutAnew.add(representation.lineage[3]);
    edits.push(representation.addressing === 'base' ? editIndexed(rewrite) : editSegmentList(rewrite));
  }
  edits.push(editSurroundings(document, laidOutAnew));
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

/** Whether `$Bandwidth$` stands in a template that may apply: files of another number are not there. */
function namesFilesByBandwidth(lineage: MpdRepresentation['lineage']): boolean {
  return lineage.some((element) => {
    const { attributes } = childOf(element, 'SegmentTemplate') ?? {};
    return [...(attributes?.values() ?? [])].some((value) => value.includes('$Bandwidth'));
  });
}

/** Null where the representation's parts stay where they are. */
function rewriteOf(
  document: MpdDocument,
  representation: MpdRepresentation,
  index: FolderIndex,
  parts: SignedParts,
): RepresentationRewrite | null {
  const { init, segments, lineage } = representation;
  if (init === null || !statesRanges(representation)) return null;
  const signedInit = parts.get(partKey(init));
  const fragments = segments.map(({ part }) => parts.get(partKey(part))).filter((part) => part !== undefined);
  if (signedInit === undefined || fragments.length !== segments.length) return null;
  const base = outerBase(document, lineage, index);
  return {
    document,
    representation,
    init: signedInit,
    fragments,
    referenceTo: (path) => relativeReference(base, path),
  };
}

/** Whether byte ranges stand in what addresses a representation, be it that they cover whole files. */
function statesRanges({ addressing, init, segments, lineage }: MpdRepresentation): boolean {
  if ([init, ...segments.map(({ part }) => part)].some((part) => part?.range != null)) return true;
  const lists = addressing === 'list' ? lineage.flatMap((element) => childOf(element, 'SegmentList') ?? []) : [];
  return lists.some(
    (list) =>
      childOf(list, 'Initialization')?.attributes.has('range') === true ||
      childrenOf(list, 'SegmentURL').some(({ attributes }) => attributes.has('mediaRange')),
  );
}

/** The folder path that references are relative to once the representation has no BaseURL of its own. */
function outerBase({ path, text }: MpdDocument, lineage: MpdRepresentation['lineage'], index: FolderIndex): string {
  const values = new MpdValues(path, text);
  let base = index.baseOf(path);
  for (const element of lineage.slice(0, 3)) base = enterBaseUrl(base, element, index, values);
  return index.pathOf(base, base.href, { playlist: path, line: 1 });
}

/** SegmentBase and its file become a SegmentTemplate with the timeline that the segment index held. */
function editIndexed(rewrite: RepresentationRewrite): TextEdit[] {
  const { document, representation } = rewrite;
  const { text } = document;
  const [, , , element] = representation.lineage;
  const own = childOf(element, 'SegmentBase');
  const outerIndent = indentOf(text, element);
  const change =
    own === undefined
      ? appendInside(text, element, `  ${templateFor(rewrite, `${outerIndent}  `)}\n${outerIndent}`)
      : replaceElement(own, templateFor(rewrite, indentOf(text, own)));
  return [...childrenOf(element, 'BaseURL').map((baseUrl) => removeElement(text, baseUrl)), change];
}

/** Edits what stands around the representations: profiles, alignment, and a SegmentBase that none of them uses any more. */
function editSurroundings({ text, representations }: MpdDocument, laidOutAnew: ReadonlySet<XmlElement>): TextEdit[] {
  const touched = new Set<XmlElement>();
  const partlyOld = new Set<XmlElement>();
  for (const { lineage } of representations) {
    const set = laidOutAnew.has(lineage[3]) ? touched : partlyOld;
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
