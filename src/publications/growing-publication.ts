import assert from 'node:assert/strict';
import { posix } from 'node:path';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { Warning } from '#errors/warning.ts';
import type { InitLayout } from './fragments/init-layout.ts';
import { PATHS_OF_FILES } from './fragments/signed-part.ts';
import type { MediaPart, Rendition } from './media-part.ts';
import type { Publication, PublicationPatterns, ReadPublication } from './publication.ts';
import { publicationFolder } from './publication-folder.ts';
import { readInits, readPublication } from './read-publication.ts';
import type { MapPlan, OpenMap } from './signing/merkle-maps.ts';
import { type SignedFragments, signFragments, trackIdsOf } from './signing/sign-rendition.ts';
import { FragmentGroupMutex, type FragmentsContext } from './signing/signing-context.ts';
import type { FragmentsOutput, SigningTask, WrittenPublication } from './signing-task.ts';

/** A publication that another program writes while its fragments are signed; each rendition is a folder. */
interface GrowingPublication {
  readonly folder: SourceFolder & { sizeOf(path: string): number };
  /** Size of its sources together in bytes. */
  readonly sizeBytes: number;
  /** Names of its files. */
  readonly patterns: PublicationPatterns;
  /** Renditions that are signed while they grow, with the number of fragments that is expected. */
  readonly renditions: readonly { readonly folder: string; readonly fragmentCount: number }[];
  /** Paths of its playlists. */
  readonly playlistPaths: readonly string[];
  /** Makes the publication, and calls `wrote` with each file that is complete. Returns warnings about it. */
  make(signal: AbortSignal, wrote: (path: string) => void): Promise<readonly Warning[]>;
  /** Called with a fragment that is signed and not read again. */
  readonly signed?: (part: MediaPart) => Promise<void>;
}

/** Makes the task of signing a publication while it is made. */
export function growingTaskOf(publication: GrowingPublication): SigningTask {
  return {
    title: publication.folder.name,
    sizeBytes: publication.sizeBytes,
    renditions: publication.renditions.map(({ fragmentCount }) => ({ firstTrackId: 1, fragmentCount })),
    playlistPaths: publication.playlistPaths,
    writeFragments: (maps, output) => signWhileGrowing(publication, maps, output),
  };
}

async function signWhileGrowing(
  { folder, patterns, renditions, make, signed }: GrowingPublication,
  maps: readonly MapPlan[],
  output: FragmentsOutput,
): Promise<WrittenPublication> {
  const stop = new AbortController();
  const signal = AbortSignal.any([output.signal, stop.signal]);
  const signing: FragmentsContext = {
    ...output,
    signal,
    folder,
    paths: PATHS_OF_FILES,
    mutex: new FragmentGroupMutex(),
    sizeOf: (path) => folder.sizeOf(path),
    ...(signed !== undefined && { done: signed }),
  };
  const growing = new Map(
    renditions.map((rendition, index) => [
      rendition.folder,
      new GrowingRendition(itemAt(maps, index), signing, (error) => stop.abort(error)),
    ]),
  );
  try {
    const warnings = await make(signal, (path) => {
      if (path.endsWith('.m4s')) growing.get(posix.dirname(path))?.add({ path, range: null });
    });
    const read = publicationFolder(folder);
    const publication = await readPublication(read, patterns, signal);
    return { ...(await signRest(publication, growing, { ...signing, folder: read })), warnings };
  } catch (error) {
    stop.abort(error);
    throw error;
  } finally {
    // Nothing may be running when the output is discarded; what failed has been thrown above.
    await Promise.all([...growing.values()].map((rendition) => rendition.settled()));
  }
}

/** Signs the fragments that were not signed while the publication grew: the last of every rendition, and text. */
async function signRest(
  publication: Publication,
  growing: ReadonlyMap<string, GrowingRendition>,
  signing: FragmentsContext & Pick<ReadPublication, 'folder'>,
): Promise<Omit<WrittenPublication, 'warnings'>> {
  const { folder, signal } = signing;
  const { renditions } = publication;
  const inits = await readInits(folder, renditions, signal);
  // All of them at once, because each has to be told that it is complete.
  const signed = await mapConcurrent(
    renditions,
    renditions.length,
    async (rendition, index): Promise<SignedRendition> => {
      const init = itemAt(inits, index);
      const begun = growing.get(posix.dirname(init.path));
      if (begun !== undefined) return await begun.finish(rendition, init);
      const map = { uniqueId: growing.size + index + 1, localId: init.firstTrackId, levels: 0 };
      return { map, fragments: await signFragments(rendition.fragments, init, map, signing) };
    },
  );
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

/** A rendition whose fragments are signed as they become complete. */
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

  /** Adds a fragment that is complete; fragments come in playback order. */
  add(part: MediaPart): void {
    this.#parts.push(part);
    if (this.#signing !== null) return;
    this.#signing = this.#sign(part);
    this.#signing.catch(this.#failed);
  }

  /** Signs the remaining fragments. Throws `PACKAGED_OUTPUT_INVALID` when the init segment is of another track. */
  async finish({ fragments }: Rendition, init: InitLayout): Promise<SignedRendition> {
    const { items } = this.#parts;
    const isPrefix = items.every(({ path }, index) => path === fragments[index]?.path);
    assert(isPrefix, 'segments become complete in the order of the playlist');
    for (const fragment of fragments.slice(items.length)) this.add(fragment);
    this.#parts.end();
    assert(this.#signing !== null, 'a rendition has fragments');
    const signed = await this.#signing;
    if (signed.map.localId === init.firstTrackId) return signed;
    throw new AppError('PACKAGED_OUTPUT_INVALID', {
      file: init.path,
      problem: 'it has another track than its segments',
    });
  }

  /** Resolves when nothing of it is running any more. */
  async settled(): Promise<void> {
    this.#parts.end();
    await this.#signing?.catch(() => undefined);
  }

  /** Signs the fragments. The packager writes init segments again at its end, so the first fragment tells the track. */
  async #sign(first: MediaPart): Promise<SignedRendition> {
    const trackIds = await trackIdsOf(first, this.#context);
    const [localId] = trackIds;
    assert(localId !== undefined, 'a segment of the packager has a track');
    const map = { ...this.#map, localId };
    // Sizes that fragments leave to the init segment are compared when the output is verified.
    const tracks = { path: posix.dirname(first.path), trackIds, sampleSizes: new Map() };
    return { map, fragments: await signFragments(this.#parts, tracks, map, this.#context) };
  }
}

/** List that can be iterated while it grows: each iteration waits for the next item, until `end` is called. */
export class GrowingList<Item> implements AsyncIterable<Item> {
  readonly #items: Item[] = [];
  #isEnded = false;
  #changed = Promise.withResolvers<void>();

  get items(): readonly Item[] {
    return this.#items;
  }

  push(...items: readonly Item[]): void {
    this.#items.push(...items);
    this.#wake();
  }

  /** Ends all iterations after the last item. Safe to call again. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (let seen = 0; ; ) {
      for (const item of this.#items.slice(seen)) {
        seen += 1;
        yield item;
      }
      if (seen < this.#items.length) continue;
      if (this.#isEnded) return;
      await this.#changed.promise;
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
