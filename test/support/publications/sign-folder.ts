import assert from 'node:assert/strict';
import { readRange } from '#bytes/byte-source.ts';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { readFragmentLayout } from '#publications/fragments/fragment-layout.ts';
import { type InitLayout, readInitLayout } from '#publications/fragments/init-layout.ts';
import type { SignedPart } from '#publications/fragments/signed-part.ts';
import { outputPathsOf } from '#publications/fragments/signed-part.ts';
import { type PartReader, readerOf } from '#publications/fragments/top-boxes.ts';
import { type MediaPart, partKey, type Rendition } from '#publications/media-part.ts';
import type { Publication, PublicationPatterns } from '#publications/publication.ts';
import type { PublicationFolder } from '#publications/publication-folder.ts';
import { readPublication } from '#publications/read-publication.ts';
import { rewritePlaylists } from '#publications/rewriting/rewrite-playlists.ts';
import {
  bindPublication,
  type MapPlan,
  merkleBoxesOf,
  merkleBoxSizes,
  placeholderBinding,
  planMaps,
} from '#publications/signing/merkle-maps.ts';
import { planFragment, planInit } from '#publications/signing/plan-parts.ts';
import { makeManifest } from '../manifests/make-manifest.ts';
import { memorySink } from '../memory-bytes.ts';

const { signal } = new AbortController();

/** A publication that was signed in memory, and where its parts went. */
export interface SignedFolder {
  readonly publication: Publication;
  readonly maps: readonly MapPlan[];
  /** Init segments and fragments of the output. */
  readonly files: Record<string, Buffer>;
  /** Playlists that were rewritten. */
  readonly rewritten: ReadonlyMap<string, string>;
  /** The whole output folder. */
  readonly output: Record<string, string | Uint8Array>;
  readonly renditions: readonly { readonly init: string; readonly fragments: readonly string[] }[];
}

/** Returns the renditions of a signed folder by their parts, which are whole files. */
export function signedRenditions({ renditions }: SignedFolder): Rendition[] {
  const whole = (path: string): MediaPart => ({ path, range: null });
  return renditions.map(({ init, fragments }) => ({ init: whole(init), fragments: fragments.map(whole) }));
}

/** Signs a publication as the service does it. `ballastBytes` stands for assertions that fill the manifest. */
export async function signFolder(
  folder: PublicationFolder,
  patterns: PublicationPatterns,
  ballastBytes = 16_000,
): Promise<SignedFolder> {
  const publication = await readPublication(folder, patterns, signal);
  const paths = outputPathsOf(publication);
  const pathOf = (part: MediaPart): string => paths.get(partKey(part)) as string;
  const inits = await Promise.all(publication.renditions.map(({ init }) => withPart(folder, init, readInitLayout)));
  const maps = planMaps(
    publication.renditions.map(({ fragments }, index) => ({
      firstTrackId: inits[index]?.firstTrackId as number,
      fragmentCount: fragments.length,
    })),
    ballastBytes,
  );
  const files: Record<string, Buffer> = {};
  const manifestSizeBytes = (await makeManifest(placeholderBinding(maps))).length;

  const digests = [];
  const parts = new Map<string, SignedPart>();
  const note = (source: MediaPart, bytes: Buffer, sizeBytes: number, merkleBoxSizeBytes: number): void => {
    parts.set(partKey(source), {
      source,
      path: pathOf(source),
      addedBytes: bytes.length - sizeBytes,
      merkleBoxSizeBytes,
    });
  };
  const sizeOf = ({ path, range }: MediaPart): number =>
    range?.length ?? (folder.files.find((file) => file.path === path)?.sizeBytes as number);
  for (const [index, { init, fragments }] of publication.renditions.entries()) {
    const map = maps[index] as MapPlan;
    const boxSizeOf = merkleBoxSizes(map);
    const leaves: Uint8Array[] = [];
    const offsets: number[] = [];
    for (const [location, part] of fragments.entries()) {
      const layout = await withPart(folder, part, readFragmentLayout);
      const { plan, merkleBoxOffset } = planFragment(layout, boxSizeOf(location), new Map());
      const { bytes, flat } = await execute(folder, part, plan);
      files[pathOf(part)] = bytes;
      note(part, bytes, sizeOf(part), boxSizeOf(location));
      leaves.push(flat);
      offsets.push(merkleBoxOffset);
    }
    const boxes = merkleBoxesOf(map, 0, leaves);
    for (const [location, part] of fragments.entries()) {
      const box = boxes[location] as Uint8Array;
      assert.equal(box.length, boxSizeOf(location));
      files[pathOf(part)]?.set(box, offsets[location]);
    }
    const plan = planInit(inits[index] as InitLayout, manifestSizeBytes);
    const { bytes, flat } = await execute(folder, init, plan);
    files[pathOf(init)] = bytes;
    note(init, bytes, sizeOf(init), 0);
    digests.push({ initHash: flat, leaves });
  }

  const manifest = await makeManifest(bindPublication(maps, digests), manifestSizeBytes);
  for (const [index, { init }] of publication.renditions.entries()) {
    const plan = planInit(inits[index] as InitLayout, manifestSizeBytes);
    const sink = {
      ...memorySink(0),
      write: async (bytes: Uint8Array, at: number) => void files[pathOf(init)]?.set(bytes, at),
    };
    await fillHole(plan, sink, manifest, signal);
  }
  const renditions = publication.renditions.map(({ init, fragments }) => ({
    init: pathOf(init),
    fragments: fragments.map(pathOf),
  }));
  const rewritten = await rewritePlaylists(publication, folder, parts, signal);
  const copied = [...publication.otherPaths, ...publication.playlists.map(({ path }) => path)];
  const output: SignedFolder['output'] = Object.fromEntries(
    await Promise.all(copied.map(async (path) => [path, await readWhole(folder, path)])),
  );
  return {
    publication,
    maps,
    files,
    rewritten,
    renditions,
    output: { ...output, ...files, ...Object.fromEntries(rewritten) },
  };
}

async function readWhole(folder: SourceFolder, path: string): Promise<Uint8Array> {
  const source = await folder.open(path, signal);
  return await readRange(source, 0, source.sizeBytes, signal);
}

async function withPart<T>(
  folder: SourceFolder,
  part: MediaPart,
  read: (reader: PartReader) => Promise<T>,
): Promise<T> {
  const source = await folder.open(part.path, signal);
  return await read(await readerOf(source, part, signal));
}

async function execute(
  folder: SourceFolder,
  part: MediaPart,
  plan: Parameters<typeof executePlan>[0],
): Promise<{ bytes: Buffer; flat: Uint8Array }> {
  const sink = memorySink(outputSizeBytes(plan));
  const { flat } = await executePlan(plan, await folder.open(part.path, signal), sink, { signal });
  return { bytes: sink.bytes, flat };
}
