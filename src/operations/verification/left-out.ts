import { z } from 'zod';
import { type ByteSource, readPieces, readRange } from '#bytes/byte-source.ts';
import type { Verification } from '#contract/verification.ts';
import type { ByteRange, ManifestElement, MediaLayout, ReadableLayout, StrayBox } from '#formats/format-handler.ts';
import { linksToOtherFiles } from '#formats/matroska-links.ts';
import type { PictureManifest } from '#formats/picture-manifest.ts';
import { beginsWithText } from '#formats/text-beginning.ts';
import { readStoreGraph } from '#provenance/chain-limits.ts';
import { decodeCbor, type JumbfBox, onlyCbor, onlyChild } from '#provenance/jumbf.ts';
import { claimOf, manifestIn, parseManifestStore } from '#provenance/manifest-store.ts';
import { hasKnownHeaders, unsignedParts } from '#provenance/unsigned-bytes.ts';
import type { ManifestReport } from '#provenance/validation-report.ts';
import { coverageOf, type HashedParts, hashedParts } from './hashed-parts.ts';
import { areInPlace } from './merkle-trees.ts';
import { LINKS_CODE, TEXT_CODE } from './summarize.ts';

// A hash leaves out the bytes of its manifest, which anybody can change there. They are an element of C2PA, which holds a
// manifest store and zeros, and nothing else: whoever makes the manifest shorter gets space for media in it, or beside it.

/** Finding about a manifest that leaves out too much, or files that its file may name: a failure makes it invalid. */
export type LeftOut = Pick<Verification['codes'][number], 'code' | 'kind'> & { readonly explanation?: string };

const byteRanges = z.array(z.object({ start: z.number(), length: z.number() }));
const boxes = z.array(z.object({ xpath: z.string(), data: z.unknown().optional(), subset: z.unknown().optional() }));
const dataHash = z.object({ exclusions: byteRanges.nullish() });
const ofAlgorithm = z.object({ alg: z.string().nullish() });
const bmffHash = ofAlgorithm.extend({ exclusions: boxes, merkle: z.array(z.unknown()).nullish() });

type ByteExclusion = z.infer<typeof byteRanges>[number];

/**
 * The binding of a manifest to its file: the byte ranges or the boxes that its hash leaves out, or the parts that are hashed. `algorithm` is
 * that of hashes which state none.
 */
type Binding =
  | (HashedParts & {
      readonly by: 'parts';
      /** True where further hashes, which are not compared, bind other files behind the first one. */
      readonly isOfFirst: boolean;
    })
  | { readonly by: 'ranges'; readonly exclusions: readonly ByteExclusion[] }
  | {
      readonly by: 'boxes';
      readonly exclusions: z.infer<typeof boxes>;
      readonly algorithm: string;
      readonly merkle?: unknown[] | null | undefined;
    };

/** Labels of hashes of files that stand behind the first one in the same file (C2PA 2.3, multi-asset hash). */
const OF_FURTHER_FILES = /^c2pa\.hash\.(?:multi-asset|\w+\.part)(?:__\d+)?$/;

/**
 * Returns the binding of the manifest of a label, by default the last one of the store; that of an update stands in the manifest that
 * it updates. Null where it cannot be read here, or is none that leaves out ranges or boxes, or hashes parts.
 */
export function bindingOf(store: Uint8Array, label?: string): Binding | null {
  const manifest = updatedManifest(store, label);
  const assertions = onlyChild(manifest, 'c2pa.assertions')?.children ?? [];
  const bindings = assertions.filter(({ label }) => label.startsWith('c2pa.hash.'));
  const [binding, ...others] = bindings.filter(({ label }) => !OF_FURTHER_FILES.test(label));
  if (binding === undefined || others.length > 0) return null;
  const content = decodeCbor(onlyCbor(binding));
  const algorithm = algorithmIn(content) ?? algorithmIn(decodeCbor(onlyCbor(claimOf(manifest)))) ?? 'sha256';
  if (binding.label === 'c2pa.hash.data') {
    const { data } = dataHash.safeParse(content);
    return data === undefined ? null : { by: 'ranges', exclusions: data.exclusions ?? [] };
  }
  if (binding.label === 'c2pa.hash.boxes') {
    const { data } = hashedParts.safeParse(content);
    return data === undefined ? null : { by: 'parts', parts: data.boxes, isOfFirst: bindings.length > 1, algorithm };
  }
  if (!binding.label.startsWith('c2pa.hash.bmff')) return null;
  const { data } = bmffHash.safeParse(content);
  return data === undefined ? null : { by: 'boxes', ...data, algorithm };
}

/** Returns the algorithm that a claim or an assertion states for its hashes. */
function algorithmIn(content: unknown): string | null | undefined {
  return ofAlgorithm.safeParse(content).data?.alg;
}

/** The type of an update manifest, which has no binding of its own (C2PA 2.2 §11.2.3). */
const UPDATE_TYPE = 'c2um';

function updatedManifest(store: Uint8Array, label?: string): JumbfBox | undefined {
  let manifest = manifestIn(store, label);
  if (manifest?.type !== UPDATE_TYPE) return manifest;
  const { manifests } = readStoreGraph(store);
  for (let count = 0; manifest?.type === UPDATE_TYPE && count < manifests.size; count += 1) {
    const [updated, ...others]: string[] = [...new Set(manifests.get(manifest.label)?.ingredients)];
    manifest = updated === undefined || others.length > 0 ? undefined : manifestIn(store, updated);
  }
  return manifest;
}

const UNKNOWN_HEADERS =
  'The signature has headers that it does not cover and that are not known or hold something else, or padding that is not zero.';

/** The part of a report that tells what was read. */
type ReadReport = Pick<ManifestReport, 'active_manifest' | 'validation_results'>;

/** Codes by which readers tell, for information, of a time-stamp that confirms nothing: nobody but a forger writes such into a header. */
const FALSE_TIME_STAMPS = ['timeStamp.malformed', 'timeStamp.mismatch'];

/**
 * Returns what to say of an embedded manifest whose signature has more in headers that it does not cover than belongs there; null where
 * it has not.
 */
export function findInHeaders(store: Uint8Array, report: ReadReport): LeftOut | null {
  const { active_manifest: label, validation_results: results } = report;
  const { informational = [] } = results?.activeManifest ?? {};
  const code = FALSE_TIME_STAMPS.find((each) => informational.some((finding) => finding.code === each));
  if (code !== undefined) return { code, kind: 'failure' };
  const binding = bindingOf(store, label);
  if (hasKnownHeaders(manifestIn(store, label))) return null;
  return { code: mismatchOf(binding), kind: 'failure', explanation: UNKNOWN_HEADERS };
}

function mismatchOf(binding: Binding | null): string {
  if (binding?.by === 'parts') return 'assertion.boxesHash.mismatch';
  return binding?.by === 'boxes' ? 'assertion.bmffHash.mismatch' : 'assertion.dataHash.mismatch';
}

/** A file with its manifest. */
export interface FileWithManifest {
  readonly source: ByteSource;
  readonly mediaType: string;
  /** Null where the container cannot be read here. */
  readonly layout: ReadableLayout | null;
  /** The embedded manifest of a picture; null for anything else. */
  readonly picture: PictureManifest | null;
  /** Null where its bytes are not known here. */
  readonly store: Uint8Array | null;
  readonly isSidecar: boolean;
}

/** A file whose manifest the readers accept. */
interface AcceptedFile extends FileWithManifest {
  readonly report: ReadReport;
}

/**
 * Returns what to say of a file whose manifest leaves out more of it than itself (C2PA 2.2 §15.12); null where it does not.
 * A binding of an embedded manifest that cannot be read here is left to the readers.
 */
export async function findLeftOut(file: AcceptedFile, signal: AbortSignal): Promise<LeftOut | null> {
  const { layout, picture, store, report, isSidecar } = file;
  const binding = store === null ? null : bindingOf(store, report.active_manifest);
  const isUnread = store === null && picture === null;
  if (isUnread || (isSidecar && coversAll(binding))) return await findNamedFiles(file, signal);
  const isEmbedded = !isSidecar || (layout !== null && layout.elements.length > 0);
  const inHeaders = isEmbedded && store !== null ? findInHeaders(store, report) : null;
  if (inHeaders !== null) return inHeaders;
  const problem = await problemOf(binding, file, signal);
  if (problem !== null) return { code: mismatchOf(binding), kind: 'failure', explanation: problem };
  const extra =
    binding?.by === 'parts' ? await findUnhashed(binding, file, signal) : findExtra(binding, picture ?? layout);
  return extra ?? (await findNamedFiles(file, signal));
}

/** The code of a picture that its hashes do not cover, as far as it is known here. */
const UNHASHED = 'assertion.boxesHash.additionalExclusionsPresent';

/** Returns what to say of a picture of which not all parts are hashed; null where all are. */
async function findUnhashed(
  { isOfFirst, ...hashed }: Binding & { readonly by: 'parts' },
  { source, mediaType, picture, isSidecar }: AcceptedFile,
  signal: AbortSignal,
): Promise<LeftOut | null> {
  const coverage = await coverageOf(hashed, { source, mediaType, element: picture?.elements[0] }, signal);
  if (coverage === 'whole') return null;
  if (coverage === 'begun' && !isOfFirst) return { code: 'assertion.boxesHash.unknownBox', kind: 'failure' };
  const kind = isSidecar ? 'failure' : 'informational';
  return { code: UNHASHED, kind };
}

function coversAll(binding: Binding | null): boolean {
  return binding?.by === 'ranges' && binding.exclusions.every(({ length }) => length === 0);
}

/**
 * Returns what to say of a file that leads players to others: one that they may read as text, which may be a list of files that play in
 * its place, such as SVG, and Matroska with linked segments. In media that embed their manifest, text stands in place of them.
 */
async function findNamedFiles(
  { source, layout, isSidecar }: AcceptedFile,
  signal: AbortSignal,
): Promise<LeftOut | null> {
  if (layout?.startsLikeText) {
    const explanation =
      'Players may read the file as text, which names other files: it has text before its first frame of sound.';
    return { code: TEXT_CODE, kind: 'failure', explanation };
  }
  if (layout !== null && !isSidecar) return null;
  if (await beginsWithText(source, signal)) {
    const explanation = 'The file is text, which may name other files: what these hold is not covered.';
    return { code: TEXT_CODE, kind: 'informational', explanation };
  }
  if (!(await linksToOtherFiles(source, signal))) return null;
  const explanation =
    'The file links to segments of other files, which some players play: what these hold is not covered.';
  return { code: LINKS_CODE, kind: 'informational', explanation };
}

/** Returns why what a binding leaves out is not its manifest alone, as a sentence; null where it is. */
async function problemOf(binding: Binding | null, file: AcceptedFile, signal: AbortSignal): Promise<string | null> {
  const { layout, picture, isSidecar } = file;
  if (binding === null && isSidecar) return 'The binding to the media cannot be read here.';
  const { merkleBoxes = [], mediaBoxes, isBroken = false } = layout ?? {};
  if (binding?.by === 'boxes' && mediaBoxes === undefined)
    return 'The binding leaves out boxes, and those of the file cannot be read here.';
  if (isBroken) return 'The file has a box that is smaller than its header: players find other boxes behind it.';
  const { algorithm, merkle: maps = [] } = binding?.by === 'boxes' ? binding : { algorithm: '' };
  if (
    !(await areInPlace({ maps, algorithm }, { source: file.source, merkleBoxes, mediaBoxes: mediaBoxes ?? [] }, signal))
  )
    return 'The file has media in the place of other media, or Merkle boxes that its manifest does not have in this order, or with more than their proof.';
  if (picture !== null && !isStoreAlone(file.store)) return OTHER_BYTES;
  for (const element of layout?.elements ?? []) {
    if (!(await holdsStoreAlone(element, file, signal))) return OTHER_BYTES;
  }
  const elements = (picture ?? layout)?.elements ?? [];
  const ranges = binding?.by === 'ranges' ? binding.exclusions.filter(({ length }) => length > 0) : [];
  for (const range of ranges) {
    const element = elements.find((each) => overlaps(each, range));
    if (element === undefined && isSidecar)
      return 'The manifest leaves out a part of the file that is not for a manifest.';
    if (element !== undefined && !holds(element, range))
      return 'Beside the manifest, the binding leaves out other bytes.';
  }
  return null;
}

const OTHER_BYTES = 'Beside the manifest, its box, chunk or frame holds other bytes.';

/** Tells whether bytes are a manifest store that can be read in one way, then zeros. */
function isStoreAlone(bytes: Uint8Array | null): boolean {
  const store = bytes === null ? undefined : parseManifestStore(bytes);
  return store !== undefined && bytes?.subarray(store.whole.length).every((byte) => byte === 0) === true;
}

/**
 * Tells whether an element holds the manifest store that was read, which can be read in one way, then zeros, and nothing that plays.
 * Beside a sidecar, a copy of its store may stand in the file: the signature of the sidecar says nothing of another one.
 */
async function holdsStoreAlone(
  { content, ...element }: ManifestElement,
  { source, layout, report, store: read, isSidecar }: AcceptedFile,
  signal: AbortSignal,
): Promise<boolean> {
  const store = read === null ? undefined : parseManifestStore(read);
  if (content === null || store === undefined) return false;
  const held = await readRange(source, content.offset, Math.min(content.length, store.whole.length), signal);
  const part = parseManifestStore(held);
  if (part === undefined || !(part.whole.equals(store.whole) || (!isSidecar && isPartOf(part, store)))) return false;
  if (await layout?.leadsInto?.(element, source, signal)) return false;
  const { holdsMedia } = layout ?? {};
  // Signed bytes may look like media by chance: a manifest's label is random, and so are hashes.
  if (
    holdsMedia !== undefined &&
    unsignedParts(store, report.active_manifest).some((part) => holdsMedia(part, content.offset))
  )
    return false;
  return await areZeros(source, content.offset + part.whole.length, content.offset + content.length, signal);
}

/** Tells whether a store has nothing but manifests of another one: that of an update is made of two. */
function isPartOf(part: JumbfBox, store: JumbfBox): boolean {
  const manifests = new Map(store.children.map(({ label, whole }) => [label, whole]));
  return (
    descriptionOf(part).equals(descriptionOf(store)) &&
    part.children.every(({ label, whole }) => manifests.get(label)?.equals(whole) === true)
  );
}

/** Returns the description box of a manifest store, before its manifests. */
function descriptionOf({ bytes, children }: JumbfBox): Buffer {
  const end = children.reduce((sum, { whole }) => sum - whole.length, bytes.length);
  return Buffer.from(bytes.subarray(0, end));
}

/** Tells whether a range lies in an element: even zeros beside it are read where others were, and what follows elsewhere. */
function holds({ offset, length }: ByteRange, { start, length: rangeLength }: ByteExclusion): boolean {
  return offset <= start && start + rangeLength <= offset + length;
}

async function areZeros(source: ByteSource, start: number, end: number, signal: AbortSignal): Promise<boolean> {
  for await (const piece of readPieces(source, start, Math.min(end, source.sizeBytes), signal)) {
    if (piece.some((byte) => byte !== 0)) return false;
  }
  return true;
}

/** Top-level boxes that a BMFF hash may leave out: what they hold is never played (C2PA 2.2 §18.7.3). */
const HARMLESS_BOXES = /^\/(?:ftyp|mfra|free|skip)$/;

/** Boxes that may begin a file though a hash leaves them out: what a file type holds is judged, and of media the beginning is hashed. */
const TYPED_BOXES = ['ftyp', 'mdat'];

/**
 * Returns what to say of a binding that leaves out parts of the file beside its manifest. Players must find no media in
 * boxes that it leaves out; where it cannot be read, it may leave out all of these. `layout` is null where the file is not
 * known.
 */
export function findExtra(
  binding: Binding | null,
  layout: (Pick<MediaLayout, 'strayMedia' | 'firstBox'> & { readonly elements: readonly ByteRange[] }) | null,
): LeftOut | null {
  if (binding?.by === 'parts') return { code: UNHASHED, kind: 'informational' };
  if (binding?.by === 'ranges') {
    const isExtra = binding.exclusions.some(
      (range) => range.length > 0 && !layout?.elements.some((each) => overlaps(each, range)),
    );
    return isExtra ? { code: 'assertion.dataHash.additionalExclusionsPresent', kind: 'informational' } : null;
  }
  const code = 'assertion.bmffHash.additionalExclusionsPresent';
  const { strayMedia = [], firstBox } = layout ?? {};
  const isTypedFirst = firstBox === undefined || TYPED_BOXES.includes(firstBox.type);
  if (
    [...strayMedia, ...(isTypedFirst ? [] : [firstBox])].some(
      (box) => binding === null || binding.exclusions.some((exclusion) => mayLeaveOut(exclusion, box)),
    )
  ) {
    const explanation = 'Players find media, or how to decrypt it, in parts of the file that the binding leaves out.';
    return { code, kind: 'failure', explanation };
  }
  const hidesMedia = binding?.exclusions.some(({ xpath, data, subset }) => {
    if (HARMLESS_BOXES.test(xpath)) return false;
    // A Merkle tree binds what is left out of the media.
    if (subset != null) return xpath !== '/mdat' || (binding.merkle ?? []).length === 0;
    return xpath !== '/uuid' || !Array.isArray(data) || data.length === 0;
  });
  return hidesMedia ? { code, kind: 'informational' } : null;
}

function overlaps({ offset, length }: ByteRange, range: ByteExclusion): boolean {
  return offset < range.start + range.length && range.start < offset + length;
}

const boxData = z.array(z.object({ offset: z.number(), value: z.instanceof(Uint8Array) }));

/** Tells whether an exclusion may be of a box: of a `uuid` box it is none where it asks for another extended type. */
function mayLeaveOut(
  { xpath, data }: { readonly xpath: string; readonly data?: unknown },
  { type, boxId, headerSizeBytes }: StrayBox,
): boolean {
  if (xpath !== `/${type}`) return false;
  const asked = boxData.safeParse(data).data?.find(({ offset }) => offset === headerSizeBytes)?.value;
  if (asked === undefined || boxId === null) return true;
  const id = Buffer.from(boxId, 'hex');
  return id.subarray(0, asked.length).equals(asked.subarray(0, id.length));
}
