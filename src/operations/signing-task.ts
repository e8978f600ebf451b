import type { Warning } from '#errors/warning.ts';
import type { PartContents } from '#publications/checking/part-contents.ts';
import type { Publication } from '#publications/publication.ts';
import { GroupBench } from '#publications/signing/group-bench.ts';
import type { InitLayout } from '#publications/signing/init-layout.ts';
import type { MapPlan, RenditionSize } from '#publications/signing/merkle-maps.ts';
import { type OutputPaths, outputPathsOf } from '#publications/signing/output-paths.ts';
import { refuseSwappedInits } from '#publications/signing/refuse-swapped-inits.ts';
import { type SignedFragments, signFragments } from '#publications/signing/sign-rendition.ts';
import type { SigningContext } from '#publications/signing/signing-context.ts';
import type { ReadPublication } from './publication-ingredients.ts';

/** What is to be signed: a publication that was read, or one that is still being made. */
export interface SigningTask {
  readonly title: string;
  /** About what its files hold together, in bytes. */
  readonly sizeBytes: number;
  /** What is known of its renditions beforehand. It decides how long the proofs of their fragments are. */
  readonly renditions: readonly RenditionSize[];
  /** Writes all fragments, by a map for each of `renditions`. When it returns or throws, nothing of it is running. */
  writeFragments(maps: readonly MapPlan[], output: FragmentsOutput): Promise<WrittenPublication>;
}

/** Where fragments are written. */
export type FragmentsOutput = Pick<SigningContext, 'writer' | 'signal' | 'wrote'>;

/** A publication whose fragments are written; `maps` and `fragments` are in the order of its renditions. */
export interface WrittenPublication {
  readonly read: ReadPublication;
  /** What its parts held when they were validated; absent where they carried no manifest. */
  readonly validated?: PartContents;
  readonly paths: OutputPaths;
  readonly maps: readonly MapPlan[];
  readonly fragments: readonly SignedFragments[];
  /** About how it was made. */
  readonly warnings: readonly Warning[];
}

/**
 * A publication that was read: its renditions are written one after the other. `contents` are what its parts held when they
 * were validated; null where they carried no manifest.
 */
export function taskOf(read: ReadPublication, contents: PartContents | null): SigningTask {
  const { folder, publication, inits } = read;
  refuseSwappedInits(folder, publication, inits);
  const sizes = new Map(folder.files.map(({ path, sizeBytes }) => [path, sizeBytes]));
  const initOf = (index: number): InitLayout => inits[index] as InitLayout;
  return {
    title: folder.name,
    sizeBytes: filesOf(publication).reduce((sum, path) => sum + (sizes.get(path) ?? 0), 0),
    renditions: publication.renditions.map(({ fragments }, index) => ({
      firstTrackId: initOf(index).firstTrackId,
      fragmentCount: fragments.length,
    })),
    async writeFragments(maps, output) {
      const paths = outputPathsOf(publication);
      const sizeOf = (path: string) => sizes.get(path) ?? 0;
      const validated = contents === null ? {} : { validated: contents };
      const signing = { ...output, ...validated, folder, paths, sizeOf, bench: new GroupBench() };
      const fragments: SignedFragments[] = [];
      for (const [index, rendition] of publication.renditions.entries()) {
        fragments.push(await signFragments(rendition.fragments, initOf(index), maps[index] as MapPlan, signing));
      }
      return { read, ...validated, paths, maps, fragments, warnings: [] };
    },
  };
}

/** Every file that the output is made from, each once. */
function filesOf({ renditions, playlists, otherPaths }: Publication): string[] {
  const parts = renditions.flatMap(({ init, fragments }) => [init, ...fragments]);
  return [...new Set([...parts, ...playlists].map(({ path }) => path)), ...otherPaths];
}
