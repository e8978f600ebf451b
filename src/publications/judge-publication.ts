import type { SourceFolder } from '#bytes/source-folder.ts';
import type { FragmentReader } from '#provenance/fragment-reader.ts';
import type { VerifiedManifest } from './checking/publication-verdict.ts';
import type { StoredMap } from './checking/stored-maps.ts';
import { type ReadRendition, verifyParts } from './checking/verify-parts.ts';
import { type JudgedRendition, judgeRenditions } from './judging/judge-renditions.ts';
import { type OfficialReading, readOfficially } from './judging/official-readings.ts';
import { readStatedRenditions } from './judging/stated-renditions.ts';
import { singleFileOf } from './media-part.ts';

export type { Deviation, JudgedRendition } from './judging/judge-renditions.ts';
export type { OfficialReading } from './judging/official-readings.ts';

/** Resources that a publication is judged with. */
export interface JudgementContext {
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
  readonly official: readonly OfficialReading[];
  /** The one file that all parts are byte ranges of, where its manifest binds it as a whole; null for any other publication. */
  readonly wholeFile: string | null;
}

/**
 * Compares a publication with the manifests in its init segments: every init segment and every fragment that a playlist names,
 * and the order in which each playlist names them. Our own engine hashes all of it once; the official reader validates the
 * manifests with a sample of fragments, or with all. Differences are results, not errors; throws where the folder holds no
 * publication that can be read.
 */
export async function judgePublication(folder: SourceFolder, context: JudgementContext): Promise<JudgedPublication> {
  const { signal, reader, depth, anchors } = context;
  const stated = await readStatedRenditions(folder, signal);
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
  const nothing = { renditions: [], missingRenditions: 0, official: [] };
  if (manifests.length === 0) return { ...nothing, manifests, wholeFile: null };
  const isBoundByParts = manifests.some(({ binding }) => binding !== null);
  const wholeFile = isBoundByParts ? null : singleFileOf(there.map(({ present }) => present));
  if (wholeFile !== null) return { ...nothing, manifests, wholeFile };
  const candidates = stated.map((rendition) => {
    const index = there.indexOf(rendition);
    return { stated: rendition, read: reads.get(index) ?? null };
  });
  const renditions = judgeRenditions(candidates);
  const official = await readOfficially(renditions, { folder, reader, depth, anchors, signal, onRead: advance });
  return { manifests, renditions, missingRenditions: countMissing(manifests, renditions), official, wholeFile };
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

function keyOf({ uniqueId, localId, count, initHash }: StoredMap): string {
  return `${uniqueId} ${localId} ${count} ${Buffer.from(initHash).toString('hex')}`;
}
