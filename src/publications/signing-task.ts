import { sizesIn } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { Warning } from '#errors/warning.ts';
import type { InitLayout } from './fragments/init-layout.ts';
import type { PartContents } from './fragments/part-contents.ts';
import { type OutputPaths, outputPathsOf } from './fragments/signed-part.ts';
import { describePart, partKey, partsIn } from './media-part.ts';
import { type DeclaredKind, declaredKinds } from './playlists/rendition-listings.ts';
import { isPresented } from './presentation/presentation.ts';
import type { Publication, ReadPublication } from './publication.ts';
import type { MapPlan, RenditionSize } from './signing/merkle-maps.ts';
import { type SignedFragments, signFragments } from './signing/sign-rendition.ts';
import { FragmentGroupMutex, type SigningContext } from './signing/signing-context.ts';

/** A publication to sign: one that was read, or one that is still being made. */
export interface SigningTask {
  readonly title: string;
  /** Size of its files together in bytes, or an estimate. */
  readonly sizeBytes: number;
  /** The renditions as far as they are known beforehand. They decide how long the proofs of their fragments are. */
  readonly renditions: readonly RenditionSize[];
  /** Paths of the playlists of its output, or more of them than there will be: they decide how large the manifest can be. */
  readonly playlistPaths: readonly string[];
  /** Writes all fragments, by a map for each of `renditions`. Nothing of it is running when it returns or throws. */
  writeFragments(maps: readonly MapPlan[], output: FragmentsOutput): Promise<WrittenPublication>;
}

/** Destination of the fragments. */
export type FragmentsOutput = Pick<SigningContext, 'writer' | 'signal' | 'wrote'>;

/** A publication whose fragments are written; `maps` and `fragments` are in the order of its renditions. */
export interface WrittenPublication {
  readonly read: ReadPublication;
  /** Digests of its parts when they were validated; absent where they carried no manifest. */
  readonly validated?: PartContents;
  readonly paths: OutputPaths;
  readonly maps: readonly MapPlan[];
  readonly fragments: readonly SignedFragments[];
  /** Warnings about how it was made. */
  readonly warnings: readonly Warning[];
}

/**
 * Makes the task of signing a publication that was read: its renditions are written one after the other. `contents` are
 * the digests of its parts when they were validated; null where they carried no manifest. Throws `INIT_OF_OTHER_KIND` when
 * a playlist says that an init segment is of another kind than it is.
 */
export function signingTaskOf(read: ReadPublication, contents: PartContents | null): SigningTask {
  const { folder, publication, inits } = read;
  refuseSwappedInits(publication, inits);
  const sizes = sizesIn(folder);
  return {
    title: folder.name,
    sizeBytes: filesOf(publication).reduce((sum, path) => sum + (sizes.get(path) ?? 0), 0),
    renditions: publication.renditions.map(({ fragments }, index) => ({
      firstTrackId: itemAt(inits, index).firstTrackId,
      fragmentCount: fragments.length,
    })),
    playlistPaths: [...publication.playlists.map(({ path }) => path), ...publication.otherPaths.filter(isPresented)],
    async writeFragments(maps, output) {
      const paths = outputPathsOf(publication);
      const sizeOf = (path: string) => sizes.get(path) ?? 0;
      const validated = contents === null ? {} : { validated: contents };
      const signing = { ...output, ...validated, folder, paths, sizeOf, mutex: new FragmentGroupMutex() };
      const fragments: SignedFragments[] = [];
      for (const [index, rendition] of publication.renditions.entries()) {
        fragments.push(await signFragments(rendition.fragments, itemAt(inits, index), itemAt(maps, index), signing));
      }
      return { read, ...validated, paths, maps, fragments, warnings: [] };
    },
  };
}

/** Handlers of pictures: moving ones, auxiliary ones such as transparency, and still ones. */
const HANDLERS: Readonly<Record<DeclaredKind['kind'], readonly string[]>> = {
  video: ['vide', 'auxv', 'pict'],
  audio: ['soun'],
};

/**
 * Refuses an init segment of another kind than a playlist says, for instance one that replaced another: what plays nowhere is
 * not signed. An init segment of several tracks must have one of the kind. Throws `INIT_OF_OTHER_KIND`.
 */
export function refuseSwappedInits({ renditions, playlists }: Publication, inits: readonly InitLayout[]): void {
  const kinds = declaredKinds(playlists);
  for (const [index, { init }] of renditions.entries()) {
    const handlers = inits[index]?.handlers ?? [];
    if (handlers.length === 0) continue;
    const wrong = kinds.get(partKey(init))?.find(({ kind }) => !handlers.some((each) => HANDLERS[kind].includes(each)));
    if (wrong !== undefined) throw new AppError('INIT_OF_OTHER_KIND', { ...wrong, init: describePart(init), handlers });
  }
}

/** Returns every file that the output is made from, each once. */
function filesOf({ renditions, playlists, otherPaths }: Publication): string[] {
  return [...new Set([...partsIn(renditions), ...playlists].map(({ path }) => path)), ...otherPaths];
}
