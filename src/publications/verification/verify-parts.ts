import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import {
  type Box,
  type DefaultSizes,
  defaultSizesOf,
  EXCLUDED_TYPES,
  MAX_MERKLE_BOX_BYTES,
  readMerkleBox,
  straySamplesOfFragment,
  straySamplesOfInit,
  strayTableOfPart,
} from '#formats/isobmff-boxes.ts';
import type { PartContents } from '../fragments/part-contents.ts';
import type { MediaPart, Rendition } from '../media-part.ts';
import type { Codec } from './codecs.ts';
import { type HashedPart, hashPart, type PartHashing } from './hash-part.ts';
import { type FragmentTimes, fragmentTimesIn, type InitTimes, initTimesIn, kindsOf, readable } from './media-times.ts';
import {
  isBound,
  readStoredBinding,
  type StoredBinding,
  type StoredMap,
  type UnknownBinding,
} from './stored-binding.ts';

/** Fragments that are read and hashed at once. */
const MAX_CONCURRENT_FRAGMENTS = 8;
/** Manifest stores that differ, of one publication, in bytes together; others are not looked at. */
export const MAX_STORES_BYTES = 64 * 1024 * 1024;
/** The number of such stores where the caller says nothing else: of a source that is signed again, each becomes an ingredient. */
const MAX_STORES = 16;
/** One byte more than a Merkle box has, and its purpose: one that is cut is none. */
const MAX_C2PA_BOX_BYTES = MAX_MERKLE_BOX_BYTES + 'merkle\0'.length + 1;
/** Between `manifest\0` and the store stands where the first auxiliary box is. */
const STORE_OFFSET = 8;
/** Hashing of parts that no manifest binds: only their contents count. */
const UNBOUND = { algorithm: 'sha256', hashesOffsets: false, exclusions: [] } as const;
const OTHER_BOXES: UnknownBinding = {
  problem: 'its init segment has several C2PA boxes, or one that is said to stand outside of it',
  isDisturbed: true,
};
const TOO_MANY_STORES: UnknownBinding = {
  problem: 'the publication carries too many different manifests',
  isDisturbed: false,
};

export interface VerificationOptions {
  /** Records the contents of the parts, for copies to be compared with. */
  readonly contents?: PartContents;
  /** Called after each part. */
  readonly verified?: () => void;
  /** Different manifests that are looked at. */
  readonly maxManifests?: number;
}

/** A rendition as it was read, by the positions that its fragments state. */
export interface ReadRendition {
  /** Its number in `PublicationVerdict.manifests`; null where the init segment carries none that is looked at. */
  readonly manifest: number | null;
  /** True where the init segment carries a manifest, looked at or not. */
  readonly hasManifest: boolean;
  /** Null where its manifest is missing or cannot be verified by this engine. */
  readonly binding: StoredBinding | null;
  /** Why its manifest cannot be verified; null where it can, or is missing. */
  readonly unknown: UnknownBinding | null;
  /** The maps that bind its init segment. */
  readonly initMaps: readonly StoredMap[];
  /** In the order of the rendition's fragments; empty where there is no binding. */
  readonly fragments: readonly ReadFragment[];
  /** The handler types of its tracks. */
  readonly handlers: ReadonlySet<string>;
  readonly codecs: readonly Codec[];
}

/** A fragment as it was read. */
export interface ReadFragment {
  readonly found: FoundFragment;
  /** When it plays by its own boxes. */
  readonly times: FragmentTimes | null;
}

/** A manifest store that init segments carry. */
export interface ReadManifest {
  readonly store: Buffer;
  /** Its binding; null where this module cannot verify it. */
  readonly binding: StoredBinding | null;
}

interface KnownManifest extends ReadManifest {
  /** Why it has no binding; null where it has one. */
  readonly unknown: UnknownBinding | null;
}

/** An init segment: its manifest, where it has one that is looked at, and what it hashes to. */
interface ReadInit {
  readonly hasStore: boolean;
  readonly manifest: KnownManifest | null;
  readonly digest: Buffer;
  readonly times: InitTimes;
  readonly sampleSizes: DefaultSizes;
  /** True where it leads players to samples: it holds no media. */
  readonly hasStraySamples: boolean;
}

/** The verification of a publication, one rendition after the other. */
export class PartsVerification {
  readonly #folder: Pick<SourceFolder, 'open'>;
  readonly #signal: AbortSignal;
  readonly #options: VerificationOptions;
  readonly #manifests: KnownManifest[] = [];

  constructor(folder: Pick<SourceFolder, 'open'>, signal: AbortSignal, options: VerificationOptions) {
    this.#folder = folder;
    this.#signal = signal;
    this.#options = options;
  }

  /** Reads the next rendition completely. */
  async add({ init, fragments }: Rendition): Promise<ReadRendition> {
    const { hasStore, manifest, ...own } = await this.#readInit(init);
    const { binding = null, unknown = TOO_MANY_STORES } = manifest ?? {};
    const read = await this.#readFragments(fragments, binding ?? UNBOUND, own);
    const initMaps = own.hasStraySamples
      ? []
      : (binding?.maps ?? []).filter(({ initHash }) => own.digest.equals(initHash));
    return {
      manifest: manifest === null ? null : this.#manifests.indexOf(manifest),
      hasManifest: hasStore,
      binding,
      unknown: hasStore ? unknown : null,
      initMaps,
      fragments: binding === null ? [] : read,
      ...kindsOf(own.times),
    };
  }

  /** The different manifests of the renditions so far, as `ReadRendition.manifest` numbers them. */
  get manifests(): readonly ReadManifest[] {
    return this.#manifests;
  }

  /** Reads an init segment twice: for its manifest, and hashed as that says. It is small. */
  #readInit(init: MediaPart): Promise<ReadInit> {
    return withSource(this.#folder, init, this.#signal, async (source) => {
      // Indexes of fragments, and of the file that it was a range of, are not copied.
      const uncopied = init.range === null ? ['mfra'] : ['mfra', 'sidx'];
      const hashing = {
        ...UNBOUND,
        c2paBoxMaxBytes: MAX_STORES_BYTES,
        ...this.#contentHashing(uncopied),
      };
      const { c2pa, content, digest, boxes, areAllKept } = await hashPart(source, init.range, hashing, this.#signal);
      this.#record(init, content);
      const moov = boxes.find(({ type }) => type === 'moov');
      const common = {
        digest,
        times: moov === undefined ? new Map() : initTimesIn(moov),
        sampleSizes: moov === undefined ? new Map() : readable(() => defaultSizesOf(moov), new Map()),
        hasStraySamples: !areAllKept || readable(() => straySamplesOfInit(boxes) !== null, true),
      };
      // A box of C2PA without a readable manifest is no proof that there was none.
      const box = c2pa.find(({ purpose }) => purpose === 'manifest') ?? c2pa[0];
      if (box === undefined) return { ...common, hasStore: false, manifest: null };
      const isDisturbed =
        c2pa.length > 1 || box.purpose !== 'manifest' || merkleOffsetIn(box.content) > source.sizeBytes;
      const manifest = this.#manifestOf(wholeBoxOf(box.content.subarray(STORE_OFFSET)), isDisturbed);
      if (manifest === null || manifest.binding === null) return { ...common, hasStore: true, manifest };
      const bound = await hashPart(source, init.range, { ...manifest.binding, c2paBoxMaxBytes: 0 }, this.#signal);
      return { ...common, hasStore: true, manifest, digest: bound.digest };
    });
  }

  /** Returns the manifest of a store, which may be known; null where there are too many. */
  #manifestOf(store: Buffer, hasOtherBoxes: boolean): KnownManifest | null {
    const known = this.#manifests.find(
      (manifest) => manifest.store.equals(store) && (manifest.unknown === OTHER_BOXES) === hasOtherBoxes,
    );
    if (known !== undefined) return known;
    const knownBytes = this.#manifests.reduce((sum, manifest) => sum + manifest.store.length, 0);
    const { maxManifests = MAX_STORES } = this.#options;
    if (this.#manifests.length === maxManifests || knownBytes + store.length > MAX_STORES_BYTES) return null;
    const binding = hasOtherBoxes ? OTHER_BOXES : readStoredBinding(store);
    const manifest = {
      store,
      ...('problem' in binding ? { binding: null, unknown: binding } : { binding, unknown: null }),
    };
    this.#manifests.push(manifest);
    return manifest;
  }

  /** Reads the fragments of a rendition, and finds out where they are bound. */
  #readFragments(
    fragments: readonly MediaPart[],
    binding: Pick<StoredBinding, 'algorithm' | 'hashesOffsets' | 'exclusions'> & Partial<StoredBinding>,
    init: Pick<ReadInit, 'times' | 'sampleSizes'>,
  ): Promise<ReadFragment[]> {
    const hashing = {
      ...binding,
      c2paBoxMaxBytes: MAX_C2PA_BOX_BYTES,
      ...this.#contentHashing(EXCLUDED_TYPES),
    };
    const { maps = [], algorithm } = binding;
    return mapConcurrent(fragments, MAX_CONCURRENT_FRAGMENTS, async (part) => {
      const hashed = await withSource(this.#folder, part, this.#signal, (source) =>
        hashPart(source, part.range, hashing, this.#signal),
      );
      this.#record(part, hashed.content);
      const moofs = hashed.boxes.filter(({ type }) => type === 'moof');
      const found = findFragment(hashed, maps, algorithm, hasStraySamples(hashed, moofs, init.sampleSizes));
      const times = fragmentTimesIn(moofs, init.times);
      return { found, times };
    });
  }

  #contentHashing(uncopied: readonly string[]): Pick<PartHashing, 'uncopied'> {
    return this.#options.contents === undefined ? {} : { uncopied };
  }

  #record(part: MediaPart, content: Buffer): void {
    this.#options.contents?.record(part, content);
    this.#options.verified?.();
  }
}

/** Returns a store without the zeros that fill its box up. */
function wholeBoxOf(bytes: Buffer): Buffer {
  const sizeBytes = bytes.length < 8 ? 0 : bytes.readUInt32BE(0);
  return sizeBytes < 8 || sizeBytes > bytes.length ? bytes : bytes.subarray(0, sizeBytes);
}

/** Tells whether a fragment leads players to samples elsewhere than in its media. */
function hasStraySamples(
  { boxes, areAllKept, media }: HashedPart,
  moofs: readonly Box[],
  sizes: DefaultSizes,
): boolean {
  if (!areAllKept || strayTableOfPart(boxes) !== null) return true;
  return moofs.some((moof) => straySamplesOfFragment(moof, media, sizes) !== null);
}

/** Finds where a fragment is bound: nowhere, unless it has one Merkle box and no other of C2PA. */
function findFragment(
  { digest, c2pa: [box, ...others] }: HashedPart,
  maps: readonly StoredMap[],
  algorithm: StoredBinding['algorithm'],
  isMisled: boolean,
): FoundFragment {
  const stored = box?.purpose === 'merkle' ? readMerkleBox(box.content) : undefined;
  const map = maps.find(({ uniqueId, localId }) => uniqueId === stored?.uniqueId && localId === stored.localId);
  if (stored === undefined || map === undefined) return null;
  const isIntact = others.length === 0 && !isMisled && isBound(digest, stored, map, algorithm);
  return { map, location: stored.location, isBound: isIntact };
}

/** The position that the Merkle box of a fragment states. */
export interface StatedPosition {
  readonly map: StoredMap;
  readonly location: number;
  /** True when the fragment's hash is bound at that position. */
  readonly isBound: boolean;
}

/** A fragment by its Merkle box; null where it has none that can be read and names a map. */
export type FoundFragment = StatedPosition | null;

/** Returns the position at which a fragment is bound by a map; undefined where it is not. */
export function positionIn(map: StoredMap | null, found: FoundFragment | undefined): number | undefined {
  return found?.map === map && found?.isBound ? found.location : undefined;
}

/** Returns where a C2PA box says that the first one of a Merkle tree stands in the file, in bytes (C2PA 2.2 §A.5.1). */
function merkleOffsetIn(content: Buffer): number {
  return content.length < STORE_OFFSET ? 0 : Number(content.readBigUInt64BE(0));
}
