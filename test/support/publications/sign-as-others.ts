import { createHash } from 'node:crypto';
import * as cborg from 'cborg';
import { buildRows, proofOf } from '#bytes/merkle-tree.ts';
import type { HashAlgorithm } from '#bytes/splice-plan.ts';
import { BMFF_EXCLUSIONS, exclusion } from '#formats/isobmff/bmff-hash.ts';
import { c2paUuidBox } from '#formats/isobmff-boxes.ts';
import type { Rendition } from '#publications/media-part.ts';
import { makeManifest } from '../manifests/make-manifest.ts';
import type { TestIdentity } from '../manifests/test-identity.ts';
import { topBoxesOf } from './signed-publication.ts';

/** Ways in which other tools may sign a publication, all by the specification. */
export interface OtherTool {
  readonly identity?: TestIdentity;
  readonly label?: string;
  readonly algorithm?: HashAlgorithm;
  /** Levels between the leaves and the row in the manifest. */
  readonly levels?: number;
  /** Says `hashes: null` where there is no proof, or leaves the field out. */
  readonly withoutProof?: 'null' | 'left-out';
  /** Numbers of the map of a rendition. */
  readonly ids?: (index: number) => { readonly uniqueId: number; readonly localId: number };
  /** Types of boxes that are left out beside those that have to be. */
  readonly excluded?: readonly string[];
  /** Further exclusions as they stand in the manifest. */
  readonly exclusions?: readonly object[];
  /** Every init segment gets a manifest of its own, with the map of its rendition alone. */
  readonly manifestEach?: boolean;
  readonly merkleBoxAt?: 'start' | 'end';
  /** Boxes that every fragment begins with. */
  readonly before?: Buffer;
}

type Files = Record<string, Buffer>;

const EXCLUDED = ['ftyp', 'mfra'];

/** Signs files of an unsigned publication as a tool of somebody else's would, by code that shares nothing with the service's. */
export async function signAsOthers(files: Files, renditions: readonly Rendition[], tool: OtherTool): Promise<Files> {
  const { algorithm = 'sha256', levels = 0, ids = (index) => ({ uniqueId: index + 1, localId: 1 }) } = tool;
  const signed = { ...files };
  const maps = renditions.map(({ fragments }, index) => {
    const paths = fragments.map(({ path }) => path);
    const placed = paths.map((path, location) => {
      const stated = { ...ids(index), location };
      return (hashes: readonly Uint8Array[] | null) => withMerkleBox(files[path] as Buffer, stated, hashes, tool);
    });
    const proofLengths = paths.map((_path, at) =>
      levels === 0
        ? 0
        : proofOf(
            buildRows(
              paths.map(() => Buffer.alloc(0)),
              levels,
              algorithm,
            ),
            at,
            levels,
          ).length,
    );
    const empty = Buffer.alloc(createHash(algorithm).digest().length);
    const leaves = placed.map((place, at) =>
      leafOf(place(proofLengths[at] === 0 ? null : Array(proofLengths[at]).fill(empty)), tool),
    );
    const rows = buildRows(leaves, levels, algorithm);
    for (const [at, path] of paths.entries()) {
      const proof = proofOf(rows, at, levels);
      signed[path] = (placed[at] as (typeof placed)[number])(proof.length === 0 ? null : proof);
    }
    return { ...ids(index), count: paths.length, alg: algorithm, hashes: rows[levels]?.map((hash) => [...hash]) };
  });
  const placeholder = maps.map((map) => ({ ...map, initHash: Array(createHash(algorithm).digest().length).fill(255) }));
  const sizeBytes = (await manifestOf(placeholder, tool)).length + 200;
  const complete = renditions.map(({ init }, index) => {
    const initHash = leafOf(withManifest(files[init.path] as Buffer, Buffer.alloc(sizeBytes)), tool);
    return { ...maps[index], initHash: [...initHash] };
  });
  for (const [index, { init }] of renditions.entries()) {
    const manifest = await manifestOf(tool.manifestEach === true ? [complete[index] as object] : complete, tool, index);
    const filled = Buffer.alloc(sizeBytes);
    filled.set(manifest);
    signed[init.path] = withManifest(files[init.path] as Buffer, filled);
  }
  return signed;
}

const cache = new Map<string, Promise<Buffer>>();

function manifestOf(merkle: readonly object[], tool: OtherTool, index = 0): Promise<Buffer> {
  const { label = 'c2pa.hash.bmff.v3', algorithm: alg = 'sha256', excluded = [], exclusions = [] } = tool;
  const further = excluded.map((type) => exclusion(`/${type}`));
  const data = {
    exclusions: [...BMFF_EXCLUSIONS, ...further, ...exclusions],
    alg,
    hash: null,
    merkle,
    name: 'jumbf manifest',
  };
  // One signing of the same data, so that init segments that share a manifest share its bytes.
  const signer = tool.identity?.chain[0]?.toString('base64');
  const key = JSON.stringify([label, data, tool.manifestEach === true ? index : 0, signer]);
  const made = cache.get(key) ?? makeManifest({ label, data } as never, undefined, tool.identity);
  cache.set(key, made);
  return made;
}

function withManifest(init: Buffer, manifest: Buffer): Buffer {
  const [ftyp, ...rest] = topBoxesOf(init).map(({ bytes }) => bytes) as [Buffer, ...Buffer[]];
  return Buffer.concat([ftyp, c2paUuidBox('manifest', manifest), ...rest]);
}

function withMerkleBox(
  fragment: Buffer,
  stated: object,
  hashes: readonly Uint8Array[] | null,
  { withoutProof = 'left-out', merkleBoxAt = 'start', before = Buffer.alloc(0) }: OtherTool,
): Buffer {
  const none = withoutProof === 'null' ? { hashes: null } : {};
  const proof = hashes === null ? none : { hashes: hashes.map((hash) => new Uint8Array(hash)) };
  const box = c2paUuidBox('merkle', cborg.encode({ ...stated, ...proof }));
  return Buffer.concat(merkleBoxAt === 'start' ? [before, box, fragment] : [before, fragment, box]);
}

function leafOf(part: Buffer, { label, algorithm = 'sha256', excluded = [] }: OtherTool): Buffer {
  const hash = createHash(algorithm);
  let offset = 0;
  for (const { type, bytes } of topBoxesOf(part)) {
    if (![...EXCLUDED, ...excluded].includes(type) && !isC2pa(bytes)) {
      const mark = Buffer.alloc(8);
      mark.writeBigUInt64BE(BigInt(offset));
      if (label !== 'c2pa.hash.bmff') hash.update(mark);
      hash.update(bytes);
    }
    offset += bytes.length;
  }
  return hash.digest();
}

function isC2pa(box: Buffer): boolean {
  return box.toString('latin1', 4, 8) === 'uuid' && box.toString('hex', 8, 12) === 'd8fec3d6';
}
