import { createHash } from 'node:crypto';
import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { refuseCostlyChain } from '#provenance/chain-limits.ts';
import type { FragmentReader, FragmentReading } from '#provenance/fragment-reader.ts';
import { MAX_SAMPLED_FRAGMENTS, sampleOf } from './checking/check-output.ts';
import type { VerifiedManifest } from './checking/publication-verdict.ts';
import type { StoredMap } from './checking/stored-maps.ts';
import { type ReadRendition, verifyParts } from './checking/verify-parts.ts';
import { type JudgedRendition, judgeRenditions } from './judging/judge-renditions.ts';
import { readStatedPublication } from './judging/stated-renditions.ts';
import type { UnboundMedia } from './judging/unbound-media.ts';
import { type MediaPart, partKey, singleFileOf } from './media-part.ts';

export type { Deviation, JudgedRendition } from './judging/judge-renditions.ts';
export type { UnboundMedia } from './judging/unbound-media.ts';

/** Resources that a publication is judged with. */
interface JudgementContext {
  readonly signal: AbortSignal;
  readonly reader: FragmentReader;
  /** Fragments that the official reader reads: at most 16 of each rendition, or all. */
  readonly depth: 'sample' | 'full';
  /** Trust anchors in PEM; null for none. */
  readonly anchors: string | null;
  progress(bytesDone: number, bytesTotal: number): void;
}

/** A publication compared with what was signed, part by part. */
export interface JudgedPublication {
  /** The different manifests of its init segments; none where it was never signed. */
  readonly manifests: readonly VerifiedManifest[];
  readonly renditions: readonly JudgedRendition[];
  /** Signed renditions that no playlist has. */
  readonly missingRenditions: number;
  /** Media that playlists name beside the renditions, and no manifest binds. */
  readonly unbound: readonly UnboundMedia[];
  readonly official: readonly OfficialReading[];
  /** The one file that all parts are byte ranges of, where its manifest binds it as a whole; null for any other publication. */
  readonly wholeFile: string | null;
}

/**
 * Compares a publication with the manifests in its init segments: every init segment and every fragment that a playlist names,
 * and the order in which each playlist names them. Our own engine hashes all of it once; the official reader validates the
 * manifests with a sample of fragments, or with all. Differences are results, not errors; throws where the folder holds no
 * publication that can be read, and `MANIFEST_TOO_COMPLEX`.
 */
export async function judgePublication(folder: SourceFolder, context: JudgementContext): Promise<JudgedPublication> {
  const { signal, reader, depth, anchors } = context;
  const { renditions: stated, unbound } = await readStatedPublication(folder, signal);
  const totalBytes = folder.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const advance = (): void => context.progress(0, totalBytes);
  const there = stated.filter(({ isInitMissing }) => !isInitMissing);
  const reads = new Map<number, ReadRendition>();
  const { manifests } = await verifyParts(
    folder,
    there.map(({ present }) => present),
    signal,
    { verified: advance, onRendition: (read) => reads.set(read.index, read) },
  );
  const nothing = { renditions: [], missingRenditions: 0, unbound: [], official: [] };
  if (manifests.length === 0) return { ...nothing, manifests, wholeFile: null };
  for (const { store } of manifests) refuseCostlyChain(folder.name, store);
  const isBoundByParts = manifests.some(({ binding }) => binding !== null);
  const isOneFile = !isBoundByParts && unbound.length === 0;
  const wholeFile = isOneFile ? singleFileOf(there.map(({ present }) => present)) : null;
  if (wholeFile !== null) return { ...nothing, manifests, wholeFile };
  const candidates = stated.map((rendition) => {
    const index = there.indexOf(rendition);
    return { stated: rendition, read: reads.get(index) ?? null };
  });
  const renditions = judgeRenditions(candidates);
  const official = await readOfficially(renditions, { folder, reader, depth, anchors, signal, onRead: advance });
  const missingRenditions = countMissing(manifests, renditions);
  return { manifests, renditions, missingRenditions, unbound, official, wholeFile };
}

/**
 * Counts the maps that nothing was judged by. Such a map belongs to a rendition that is there without its manifest, or to none.
 * Maps are compared by what they bind: copies of a manifest may differ in bytes that nobody signed.
 */
function countMissing(manifests: readonly VerifiedManifest[], renditions: readonly JudgedRendition[]): number {
  const used = new Set(renditions.flatMap(({ map }) => (map === null ? [] : [keyOf(map)])));
  const signed = new Set(manifests.flatMap(({ binding }) => binding?.maps ?? []).map(keyOf));
  const unused = [...signed].filter((key) => !used.has(key)).length;
  return Math.max(unused - renditions.filter(({ map }) => map === null).length, 0);
}

/** Names what a map binds: init segments of two publications may be the same, and their fragments are not. */
function keyOf({ uniqueId, localId, count, initHash, hashes }: StoredMap): string {
  const digest = hashes.reduce((hash, each) => hash.update(each), createHash('sha256').update(initHash)).digest('hex');
  return `${uniqueId} ${localId} ${count} ${digest}`;
}

/** Of those, the ones that our own engine finds fault with. */
const MAX_SAMPLED_DEVIATIONS = 4;
/** The reader holds an init segment and a fragment in memory; larger ones are judged by our own engine alone. */
const MAX_PART_BYTES = 64 * 1024 * 1024;

/** A fragment as the official reader sees it. */
export interface OfficialReading {
  readonly rendition: number;
  readonly part: MediaPart;
  readonly reading: FragmentReading;
}

/** The official reader, and what it reads. */
interface OfficialTask {
  readonly folder: Pick<SourceFolder, 'open'>;
  readonly reader: FragmentReader;
  /** `full` has it read every fragment. */
  readonly depth: 'sample' | 'full';
  /** Trust anchors in PEM; null for none. */
  readonly anchors: string | null;
  readonly signal: AbortSignal;
  onRead(): void;
}

/**
 * Has the official reader read every init segment with fragments of its rendition: of each manifest the first with a full
 * report, which describes the chain. Renditions that our own engine cannot judge are read completely.
 */
async function readOfficially(renditions: readonly JudgedRendition[], task: OfficialTask): Promise<OfficialReading[]> {
  const readings: OfficialReading[] = [];
  const described = new Set<number>();
  for (const [number, rendition] of renditions.entries()) {
    const manifest = rendition.read?.manifest ?? null;
    if (manifest === null) continue;
    const init = await bytesOf(rendition.stated.init, task);
    if (init === null) continue;
    const isFirst = !described.has(manifest);
    described.add(manifest);
    const chosen = chosenParts(rendition, task.depth);
    const read = await mapConcurrent(chosen, task.reader.maxConcurrency, async (part) => {
      const bytes = await bytesOf(part, task);
      if (bytes === null) return [];
      const detail = isFirst && part === chosen[0] ? 'full' : 'results';
      const reading = await task.reader.read(init, bytes, { detail, anchors: task.anchors }, task.signal);
      task.onRead();
      return [{ rendition: number, part, reading }];
    });
    readings.push(...read.flat());
  }
  return readings;
}

/** Chooses fragments, intact ones first: evenly over the programme, with the first and the last. */
function chosenParts({ stated, map, intact, deviations }: JudgedRendition, depth: 'sample' | 'full'): MediaPart[] {
  const { fragments } = stated.present;
  const sound = fragments.filter((part) => intact.has(partKey(part)));
  const others = fragments.filter((part) => !intact.has(partKey(part)));
  if (depth === 'full' || map === null) return [...sound, ...others];
  const wrong = new Set(deviations.flatMap(({ file }) => (file === null ? [] : [partKey(file)])));
  const faulty = others.filter((part) => wrong.has(partKey(part))).slice(0, MAX_SAMPLED_DEVIATIONS);
  return [...sampleOf(sound, MAX_SAMPLED_FRAGMENTS - faulty.length), ...faulty];
}

async function bytesOf({ path, range }: MediaPart, { folder, signal }: OfficialTask): Promise<Uint8Array | null> {
  const source = await folder.open(path, signal);
  try {
    const { offset, length } = range ?? { offset: 0, length: source.sizeBytes };
    return length > MAX_PART_BYTES ? null : await readRange(source, offset, length, signal);
  } finally {
    await source.close();
  }
}
