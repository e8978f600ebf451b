import { type MediaPart, type Publication, partKey, type Rendition } from '../publication.ts';

/** Digits of a fragment's number in a new file name; players do not care, people sort by name. */
const NUMBER_WIDTH = 5;

/** Where each part of a publication's renditions lies in the output, by `partKey`. */
export type OutputPaths = Pick<ReadonlyMap<string, string>, 'get'>;

/** Where parts lie that are files of their own, as those of a packaged publication are: where they were. */
export const PATHS_OF_FILES: OutputPaths = { get: (key) => key };

/**
 * Names the output files of all parts. A whole file keeps its path. Byte ranges of `v/720.mp4` become files of their own,
 * `v/720/init.mp4` and `v/720/00001.m4s` onwards, because a Merkle binding inside one file is valid to players only
 * fragment by fragment.
 */
export function outputPathsOf({ renditions, playlists, otherPaths }: Publication): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  const folders = new Set(foldersOf([...otherPaths, ...playlists.map(({ path }) => path), ...wholePaths(renditions)]));
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

function wholePaths(renditions: readonly Rendition[]): string[] {
  const parts = renditions.flatMap(({ init, fragments }): MediaPart[] => [init, ...fragments]);
  return parts.filter(({ range }) => range === null).map(({ path }) => path);
}

/** Every folder that holds one of the paths, and the paths themselves, which cannot be folders. */
function* foldersOf(paths: readonly string[]): Generator<string> {
  for (const path of paths) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) yield path.slice(0, at);
    yield path;
  }
}

/** A folder named after the file that no other file of the output lies in. */
function freeFolder(path: string, taken: Set<string>): string {
  const stem = path.replace(/(?<=[^/])\.[^./]*$/, '');
  let folder = stem;
  for (let number = 2; taken.has(folder); number += 1) folder = `${stem}-${number}`;
  taken.add(folder);
  return folder;
}
