import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { GrowingList } from '#bytes/growing-list.ts';
import type { LocalCopies } from '#bytes/local-copies.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import { AppError } from '#errors/app-error.ts';
import type { PackagedFolder } from '#packaging/packaged-folder.ts';
import type { PackagingPlan, PlannedStream } from '#packaging/planning/packaging-plan.ts';
import type { MediaPart, Publication, Rendition } from '#publications/publication.ts';
import { readPublication } from '#publications/reading/read-publication.ts';
import { GroupBench } from '#publications/signing/group-bench.ts';
import type { InitLayout } from '#publications/signing/init-layout.ts';
import type { MapPlan, OpenMap } from '#publications/signing/merkle-maps.ts';
import { PATHS_OF_FILES } from '#publications/signing/output-paths.ts';
import {
  readInitLayouts,
  type SignedFragments,
  signFragments,
  tracksOfFragment,
} from '#publications/signing/sign-rendition.ts';
import type { FragmentsContext } from '#publications/signing/signing-context.ts';
import { contextInScratch, makePublication, type PackagingTask, sizeOfSources } from './make-publication.ts';
import type { InputContext } from './operation.ts';
import type { FragmentsOutput, SigningTask, WrittenPublication } from './signing-task.ts';

/** How the packager names the files of a publication (text segments are found as fragments of a playlist). */
const PACKAGED = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.{m4s,vtt}' };

/** What is packaged, from what and into what. */
export interface Packaging {
  readonly task: PackagingTask;
  readonly sources: LocalCopies;
  readonly target: PackagedFolder;
  readonly context: InputContext;
}

/**
 * A folder of media whose segments are signed while the packager makes more of them. What was signed goes from the scratch
 * space at once, as a rule before it came to the disk.
 */
export function packagingTaskOf(packaging: Packaging): SigningTask {
  const { folder, plan } = packaging.task;
  return {
    title: folder.name,
    sizeBytes: sizeOfSources(packaging.task),
    renditions: mediaStreams(plan).map((stream) => ({
      firstTrackId: 1,
      fragmentCount: expectedFragments(stream, plan),
    })),
    writeFragments: (maps, output) => writeWhilePackaging(packaging, maps, output),
  };
}

/** The packager tells of text only at its end. */
function mediaStreams({ streams }: PackagingPlan): PlannedStream[] {
  return streams.filter(({ kind }) => kind !== 'text');
}

/** About as many: segments end at key frames. What does not say how long it is, is taken to be as long as the rest. */
function expectedFragments({ durationSeconds }: PlannedStream, { streams, segmentSeconds }: PackagingPlan): number {
  const longest = Math.max(...streams.map((stream) => stream.durationSeconds ?? 0));
  return Math.max(Math.ceil((durationSeconds ?? longest) / segmentSeconds), 1);
}

async function writeWhilePackaging(
  { task, sources, target, context }: Packaging,
  maps: readonly MapPlan[],
  output: FragmentsOutput,
): Promise<WrittenPublication> {
  const stop = new AbortController();
  const signal = AbortSignal.any([output.signal, stop.signal]);
  const signing: FragmentsContext = {
    ...output,
    signal,
    folder: target,
    paths: PATHS_OF_FILES,
    bench: new GroupBench(),
    sizeOf: (path) => target.sizeOf(path),
    // I-frame playlists name ranges of segments, which are found in them when playlists are rewritten.
    ...(!task.plan.iFramePlaylists && { done: ({ path }) => target.letGo(path) }),
  };
  const renditions = new Map(
    mediaStreams(task.plan).map(({ folder }, index) => [
      folder,
      new GrowingRendition(maps[index] as MapPlan, signing, (error) => stop.abort(error)),
    ]),
  );
  const take = (path: string): void => {
    if (path.endsWith('.m4s')) renditions.get(posix.dirname(path))?.take({ path, range: null });
  };
  try {
    const making = contextInScratch({ ...context, signal }, task, target);
    const warnings = await makePublication(task, sources, target, making, take);
    context.reached('packaged');
    const publication = await readPublication(target, PACKAGED, signal);
    return { ...(await signRest(publication, renditions, signing)), warnings };
  } catch (error) {
    stop.abort(error);
    throw error;
  } finally {
    // Nothing may be under way when the output is discarded; what failed has been thrown above.
    await Promise.all([...renditions.values()].map((rendition) => rendition.settled()));
  }
}

/** Signs what was not signed while the packager ran: the last segments of every rendition, and text. */
async function signRest(
  publication: Publication,
  growing: ReadonlyMap<string, GrowingRendition>,
  signing: FragmentsContext,
): Promise<Omit<WrittenPublication, 'warnings'>> {
  const { folder, signal } = signing;
  const inits = await readInitLayouts(folder, publication.renditions, signal);
  const { renditions } = publication;
  // All of them at once, for each has to be told that nothing more comes.
  const signed = await sideBySide(renditions, renditions.length, async (rendition, index): Promise<SignedRendition> => {
    const init = inits[index] as InitLayout;
    const begun = growing.get(posix.dirname(init.path));
    if (begun !== undefined) return await begun.finish(rendition, init);
    const map = { uniqueId: growing.size + index + 1, localId: init.firstTrackId, levels: 0 };
    return { map, fragments: await signFragments(rendition.fragments, init, map, signing) };
  });
  return {
    read: { folder, publication, inits },
    paths: PATHS_OF_FILES,
    maps: signed.map(({ map, fragments }) => ({ ...map, count: fragments.leaves.length })),
    fragments: signed.map(({ fragments }) => fragments),
  };
}

interface SignedRendition {
  readonly map: OpenMap;
  readonly fragments: SignedFragments;
}

/** A rendition whose fragments are signed as they become whole. */
class GrowingRendition {
  readonly #map: OpenMap;
  readonly #context: FragmentsContext;
  readonly #failed: (error: unknown) => void;
  readonly #parts = new GrowingList<MediaPart>();
  #signing: Promise<SignedRendition> | null = null;

  /** `failed` is called as soon as a fragment cannot be signed. */
  constructor(map: OpenMap, context: FragmentsContext, failed: (error: unknown) => void) {
    this.#map = map;
    this.#context = context;
    this.#failed = failed;
  }

  take(part: MediaPart): void {
    this.#parts.push(part);
    if (this.#signing !== null) return;
    this.#signing = this.#sign(part);
    this.#signing.catch(this.#failed);
  }

  /** Signs what of the rendition was not taken yet. */
  async finish({ fragments }: Rendition, init: InitLayout): Promise<SignedRendition> {
    const { items } = this.#parts;
    const isPrefix = items.every(({ path }, index) => path === fragments[index]?.path);
    assert(isPrefix, 'segments become whole in the order of the playlist');
    for (const fragment of fragments.slice(items.length)) this.take(fragment);
    this.#parts.end();
    assert(this.#signing !== null, 'a rendition has fragments');
    const signed = await this.#signing;
    if (signed.map.localId === init.firstTrackId) return signed;
    throw new AppError('PACKAGED_OUTPUT_INVALID', {
      file: init.path,
      problem: 'it has another track than its segments',
    });
  }

  /** Returns when nothing of it is under way any more. */
  async settled(): Promise<void> {
    this.#parts.end();
    await this.#signing?.catch(() => undefined);
  }

  /** The packager writes init segments a second time at its end, so the first fragment tells the track. */
  async #sign(first: MediaPart): Promise<SignedRendition> {
    const trackIds = await tracksOfFragment(first, this.#context);
    const [localId] = trackIds;
    assert(localId !== undefined, 'a segment of the packager has a track');
    const map = { ...this.#map, localId };
    const tracks = { path: posix.dirname(first.path), trackIds };
    return { map, fragments: await signFragments(this.#parts, tracks, map, this.#context) };
  }
}
