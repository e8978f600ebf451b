import { createHash } from 'node:crypto';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { itemAt, valueAt } from '#errors/assert.ts';
import type { Warning } from '#errors/warning.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import { instanceIdOf } from '#provenance/instance-id.ts';
import {
  type ManifestAuthor,
  type ManifestDraft,
  type SignedManifest,
  signAgainIfLarger,
} from '#provenance/manifest-author.ts';
import type { LateAssertion, ManifestRequest } from '#provenance/manifest-request.ts';
import type { FragmentReader } from '#provenance/official-reader.ts';
import { copyFile, writeText } from './copy-files.ts';
import type { SignedPart } from './fragments/signed-part.ts';
import { type MediaPart, partKey, type Rendition } from './media-part.ts';
import { type BoundPart, hashNamedFiles, type PlaylistText, textOf } from './presentation/hash-playlists.ts';
import {
  type HashedPlaylist,
  isPresented,
  listPlaylists,
  type Presentation,
  placeholderList,
  presentationAssertion,
  presentationOf,
} from './presentation/presentation.ts';
import { rewritePlaylists } from './rewriting/rewrite-playlists.ts';
import { earlierManifest } from './signing/earlier-publication.ts';
import {
  bindPublication,
  type MapPlan,
  manifestRowsSizeBytes,
  placeholderBinding,
  planMaps,
  SMALL_MANIFEST_BYTES,
} from './signing/merkle-maps.ts';
import { type PlannedInit, planSignedInit, writeSignedInit } from './signing/sign-rendition.ts';
import type { SigningContext } from './signing/signing-context.ts';
import type { FragmentsOutput, SigningTask, WrittenPublication } from './signing-task.ts';
import { verifyOutput } from './verification/verify-output.ts';

/** Files that are copied at once. */
const MAX_CONCURRENT_COPIES = 8;

/** The contents of the manifest, and the destination of the signed publication. */
interface PublicationRequest {
  readonly manifestRequest: Omit<ManifestRequest, 'title' | 'mediaType'>;
  /** Warnings about the ingredients in it. */
  readonly warnings: readonly Warning[];
  readonly destination: string;
  readonly key: StagingKey;
}

/** Callbacks and resources of the input that is signed. */
interface SigningEnvironment {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  progress(bytesDone: number, bytesTotal: number): void;
  /** Called at each named step, in this order. */
  reached(phase: 'staged' | 'copied' | 'signed' | 'sealed' | 'verified' | 'delivered'): void;
  /** Called with all warnings so far as soon as there are new ones. Throws to fail the input because of them. */
  checkWarnings(warnings: readonly Warning[]): void;
  /** Called right before the output is committed. Rejects where this process no longer holds the input's lease. */
  confirmLease(): Promise<void>;
}

/** Services that a publication is signed and written with. */
interface SigningServices {
  readonly outputs: Pick<OutputSink, 'stageFolder' | 'openFile'>;
  readonly author: ManifestAuthor;
  readonly fragments: FragmentReader;
  /** Fragments that the official reader checks; null where outputs are not verified. */
  readonly fragmentChecks: 'sample' | 'all' | null;
}

/** A publication that was signed and committed. */
interface SignedPublication {
  readonly outputPath: string;
  readonly warnings: readonly Warning[];
  /** SHA-256 of the manifest, in hexadecimal. */
  readonly manifestDigest: string;
}

/**
 * Signs a publication: writes and hashes every fragment once, has the SDK sign one manifest over all renditions, puts it
 * into every init segment, rewrites the playlists, checks the staged output and commits it as a whole. Discards what was
 * staged when anything fails.
 */
export async function signPublication(
  task: SigningTask,
  { manifestRequest, warnings: given, destination, key }: PublicationRequest,
  environment: SigningEnvironment,
  services: SigningServices,
): Promise<SignedPublication> {
  const { signal, scratch } = environment;
  const { title, sizeBytes: totalBytes } = task;
  const described = { title, mediaType: 'video/mp4', instanceId: instanceIdOf(key) };
  const draft = await scratch.withHeartbeats(() => services.author.draft({ ...manifestRequest, ...described }, signal));
  environment.checkWarnings([...given, ...draft.warnings]);
  const { maps, hasRoom } = await planManifest(draft, task, signal);
  const sink = await services.outputs.stageFolder(destination, totalBytes, key, signal, scratch);
  try {
    environment.reached('staged');
    const output = { writer: sink, signal, wrote: progressOf(environment, totalBytes) };
    const written = await task.writeFragments(maps, output);
    const warnings = [...written.warnings, ...written.read.publication.warnings, ...given, ...draft.warnings];
    environment.checkWarnings(warnings);
    const playlists = await writeOthers(written, output);
    const presentation = presentationOf(listPlaylists(playlists), hasRoom);
    const { manifest, warnings: signing } = await signWritten(written, presentation, draft, output, environment);
    warnings.push(...signing);
    if (signing.length > 0) environment.checkWarnings(warnings);
    await sink.seal(signal);
    environment.reached('sealed');
    const renditions = outputRenditions(written);
    if (services.fragmentChecks !== null) {
      const onProgress = () => environment.progress(totalBytes, totalBytes);
      const { fragments: reader, fragmentChecks: fragments } = services;
      await verifyOutput({ output: sink, renditions, reader, fragments, onProgress }, signal);
      environment.reached('verified');
    }
    const otherPaths = otherPathsOf(written);
    const publishing = { staged: sink, renditions, otherPaths, destination: sink.destination, key };
    const earlier = await earlierManifest(publishing, services.outputs, signal);
    if (earlier === null) {
      await environment.confirmLease();
      await sink.commit(signal);
    } else await sink.discard();
    environment.reached('delivered');
    const manifestDigest = createHash('sha256')
      .update(earlier ?? manifest)
      .digest('hex');
    return { outputPath: sink.destination, warnings, manifestDigest };
  } catch (error) {
    await sink.discard();
    throw error;
  }
}

/** Plan of the manifest, made before the fragments are written. */
interface ManifestPlan {
  readonly maps: readonly MapPlan[];
  /** True where the manifest has room for a list of playlists, and not for a digest over it only. */
  readonly hasRoom: boolean;
}

/**
 * Chooses the row of each Merkle tree that the manifest holds, and how it states the playlists, so that the manifest stays
 * small.
 */
async function planManifest(
  draft: ManifestDraft,
  { renditions, playlistPaths }: SigningTask,
  signal: AbortSignal,
): Promise<ManifestPlan> {
  const smallest = planMaps(renditions, Number.POSITIVE_INFINITY);
  const list = placeholderList(playlistPaths);
  const measure = (hasRoom: boolean): Promise<number> =>
    draft.measure([placeholderBinding(smallest), presentationAssertion(presentationOf(list, hasRoom))], signal);
  const [withDigest, withList] = [await measure(false), await measure(true)];
  const hasRoom = withList < SMALL_MANIFEST_BYTES || withDigest >= SMALL_MANIFEST_BYTES;
  const restBytes = (hasRoom ? withList : withDigest) - manifestRowsSizeBytes(smallest);
  return { maps: planMaps(renditions, restBytes), hasRoom };
}

/** Signs the manifest over all that is written, and writes the init segments. */
async function signWritten(
  written: WrittenPublication,
  presentation: Presentation,
  draft: ManifestDraft,
  output: FragmentsOutput,
  environment: SigningEnvironment,
): Promise<SignedManifest> {
  const { read, validated, paths } = written;
  const signing = { folder: read.folder, paths, ...output, ...(validated !== undefined && { validated }) };
  const presented = presentationAssertion(presentation);
  const { planned, signed } = await signAgainIfLarger(() => signInits(written, presented, draft, signing, environment));
  for (const init of planned) await writeSignedInit(init, signed.manifest, signing);
  environment.reached('signed');
  return signed;
}

/** Plans the init segments with space for the manifest, and signs it over them and the fragments. */
async function signInits(
  { read, maps, fragments }: WrittenPublication,
  presented: LateAssertion,
  draft: ManifestDraft,
  signing: SigningContext,
  environment: SigningEnvironment,
): Promise<{ readonly planned: readonly PlannedInit[]; readonly signed: SignedManifest }> {
  const { publication, inits } = read;
  const { signal } = signing;
  const manifestSizeBytes = await draft.measure([placeholderBinding(maps), presented], signal);
  const planned: PlannedInit[] = [];
  for (const [index, { init }] of publication.renditions.entries()) {
    planned.push(await planSignedInit(init, itemAt(inits, index), manifestSizeBytes, signing));
  }
  environment.reached('copied');

  const digests = planned.map(({ initHash }, index) => ({ initHash, leaves: fragments[index]?.leaves ?? [] }));
  return { planned, signed: await draft.sign([bindPublication(maps, digests), presented], signal) };
}

/**
 * Copies files that are not media of a signed rendition, and writes the playlists. Returns all playlists of the output, with
 * what they name beside signed renditions.
 */
async function writeOthers(
  { read: { folder, publication }, maps, fragments, paths }: WrittenPublication,
  { writer, signal, wrote }: FragmentsOutput,
): Promise<HashedPlaylist[]> {
  // The texts of playlists depend on the paths of init segments, and not on their sizes, which the manifest decides.
  const inits = publication.renditions.map(({ init }): SignedPart => {
    return { source: init, path: valueAt(paths, partKey(init)), addedBytes: 0, merkleBoxSizeBytes: 0 };
  });
  const signed = [...fragments.flatMap(({ parts }) => parts), ...inits];
  const bySource = new Map(signed.map((part) => [partKey(part.source), part]));
  const rewritten = await rewritePlaylists(publication, folder, bySource, signal);
  const copies = await mapConcurrent(publication.otherPaths, MAX_CONCURRENT_COPIES, (path) =>
    copyFile(folder, path, writer, signal, wrote),
  );
  const written = new Map(copies.map((file) => [file.path, file]));
  const playlists: PlaylistText[] = [];
  for (const file of copies) {
    if (isPresented(file.path))
      playlists.push({ ...file, text: await textOf(folder, file.path, signal), read: undefined });
  }
  for (const document of publication.playlists) {
    const { path, text } = document;
    const changed = rewritten.get(path);
    const file = await writeText(path, changed ?? text, writer, signal);
    written.set(path, file);
    playlists.push({ ...file, text: changed ?? text, read: changed === undefined ? document : undefined });
  }

  const bindings = new Map<string, BoundPart>();
  for (const [index, { path }] of inits.entries()) {
    const { uniqueId, localId } = itemAt(maps, index);
    const parts = fragments[index]?.parts ?? [];
    for (const [location, part] of parts.entries()) {
      bindings.set(part.path, { uniqueId, localId, location, count: parts.length });
    }
    bindings.set(path, { path, uniqueId, localId, count: parts.length });
  }
  const files = [...bindings.keys(), ...written.keys()].map((path) => ({
    path,
    sizeBytes: written.get(path)?.sizeBytes ?? 0,
  }));
  const { name, baseUrl } = folder;
  const presented = {
    folder: { name, files, open: folder.open.bind(folder), ...(baseUrl !== undefined && { baseUrl }) },
    bindingOf: (path: string) => bindings.get(path) ?? null,
    hash: async (path: string) => written.get(path) ?? null,
  };
  return await hashNamedFiles(playlists, presented, signal);
}

/** Returns each rendition as it is in the output, where every part is a file. */
function outputRenditions({ read, paths }: WrittenPublication): Rendition[] {
  const written = (part: MediaPart): MediaPart => ({ path: valueAt(paths, partKey(part)), range: null });
  return read.publication.renditions.map(({ init, fragments }) => ({
    init: written(init),
    fragments: fragments.map(written),
  }));
}

/** Returns the paths of the files of the output that are no parts of renditions. */
function otherPathsOf({ read: { publication } }: WrittenPublication): string[] {
  return [...publication.playlists.map(({ path }) => path), ...publication.otherPaths];
}

/** Returns a callback that adds output bytes to the input's progress. */
function progressOf(environment: SigningEnvironment, totalBytes: number): (bytes: number) => void {
  let doneBytes = 0;
  return (bytes) => {
    doneBytes += bytes;
    environment.progress(Math.min(doneBytes, totalBytes), totalBytes);
  };
}
