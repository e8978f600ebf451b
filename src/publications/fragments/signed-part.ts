import { foldersAbove } from '#bytes/path-overlap.ts';
import { type MediaPart, partKey, partsIn } from '../media-part.ts';
import type { Publication } from '../publication.ts';

/** A part of a publication in the output. */
export interface SignedPart {
  readonly source: MediaPart;
  /** Path in the output folder. */
  readonly path: string;
  /** Bytes that signing added; negative where an earlier, larger Merkle box was removed. */
  readonly addedBytes: number;
  /** Size of its Merkle box in the output; 0 for init segments. */
  readonly merkleBoxSizeBytes: number;
}

/** All parts by `partKey` of their source. */
export type SignedParts = ReadonlyMap<string, SignedPart>;

/** Digits of a fragment's number in a new file name; players do not care, people sort by name. */
const NUMBER_WIDTH = 5;

/** Paths of a publication's parts in the output, by `partKey`. */
export type OutputPaths = Pick<ReadonlyMap<string, string>, 'get'>;

/** Output paths of parts that are whole files, as those of a packaged publication: unchanged. */
export const PATHS_OF_FILES: OutputPaths = { get: (key) => key };

/**
 * Names the output files of all parts. A whole file keeps its path. Byte ranges of `v/720.mp4` become files of their own,
 * `v/720/init.mp4` and `v/720/00001.m4s` onwards, because a Merkle binding inside one file is valid to players only
 * fragment by fragment.
 */
export function outputPathsOf({ renditions, playlists, otherPaths }: Publication): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  const whole = partsIn(renditions).filter(({ range }) => range === null);
  const kept = [...otherPaths, ...playlists.map(({ path }) => path), ...whole.map(({ path }) => path)];
  // A path that is kept cannot be a folder, and no other file may lie in a folder that is named here.
  const folders = new Set(kept.flatMap((path) => [path, ...foldersAbove(path)]));
  for (const { init, fragments } of renditions) {
    const ranged = [init, ...fragments].find(({ range }) => range !== null);
    const folder = ranged === undefined ? '' : freeFolder(ranged.path, folders);
    paths.set(partKey(init), init.range === null ? init.path : `${folder}/init.mp4`);
    for (const [index, part] of fragments.entries()) {
      const name = `${folder}/${String(index + 1).padStart(NUMBER_WIDTH, '0')}.m4s`;
      paths.set(partKey(part), part.range === null ? part.path : name);
    }
  }
  return paths;
}

/** Returns a folder named after the file that no other file of the output lies in. */
function freeFolder(path: string, taken: Set<string>): string {
  const stem = path.replace(/(?<=[^/])\.[^./]*$/, '');
  let folder = stem;
  for (let number = 2; taken.has(folder); number += 1) folder = `${stem}-${number}`;
  taken.add(folder);
  return folder;
}
