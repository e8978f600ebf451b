import { sideBySide } from '#bytes/side-by-side.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { type RehashedFile, rehashFile } from './rehash-file.ts';
import { isBound, readStoredLocation, readStoredMaps, type StoredMap } from './stored-maps.ts';

/** A rendition of the output, by path. */
export interface OutputRendition {
  readonly init: string;
  /** In playback order. */
  readonly fragments: readonly string[];
}

/** Files that are read and hashed at once. */
const FILES_AT_ONCE = 4;
/** What every map and file of the service is hashed with. */
const ALGORITHM = 'sha256';
/** Between `manifest\0` and the store stand eight bytes that are zero. */
const STORE_OFFSET = 8;

/**
 * Hashes every init segment and fragment of a finished output again, from its bytes alone, and holds them against the
 * manifest inside. Rejects with `OUTPUT_PART_INVALID` at the first that does not agree. `rehashed` is called after each.
 */
export async function rehashPublication(
  output: Pick<SourceFolder, 'open'>,
  renditions: readonly OutputRendition[],
  signal: AbortSignal,
  rehashed: () => void = () => undefined,
): Promise<void> {
  let common: { readonly store: Buffer; readonly maps: readonly StoredMap[] } | undefined;
  const taken = new Set<StoredMap>();
  for (const { init, fragments } of renditions) {
    const rehashedInit = await rehash(output, init, signal);
    const store = storeIn(rehashedInit, init);
    common ??= { store, maps: readStoredMaps(store) ?? [] };
    if (!store.equals(common.store)) throw invalid(init, 'its manifest differs from that of the first init segment');
    if (common.maps.length !== renditions.length)
      throw invalid(init, 'its manifest has not one Merkle map per rendition');
    const map = await checkFragments(output, fragments, common.maps, signal, rehashed);
    if (Buffer.compare(rehashedInit.digest, map.initHash) !== 0)
      throw invalid(init, 'its hash is not the one in the manifest');
    if (taken.has(map)) throw invalid(init, 'two renditions share a Merkle map');
    taken.add(map);
  }
}

/** The manifest store of an init segment, with the zeros that fill the box up. */
function storeIn({ c2pa }: RehashedFile, path: string): Buffer {
  const [box] = c2pa;
  if (c2pa.length !== 1 || box?.purpose !== 'manifest') throw invalid(path, 'it has not exactly one manifest');
  return box.content.subarray(STORE_OFFSET);
}

/** Checks the fragments of one rendition and returns the map that all of them belong to. */
async function checkFragments(
  output: Pick<SourceFolder, 'open'>,
  fragments: readonly string[],
  maps: readonly StoredMap[],
  signal: AbortSignal,
  rehashed: () => void,
): Promise<StoredMap> {
  const found = await sideBySide(fragments, FILES_AT_ONCE, async (path, position) => {
    const map = mapOf(await rehash(output, path, signal), path, position, maps);
    rehashed();
    if (map.count !== fragments.length)
      throw invalid(path, `its Merkle map counts ${map.count} fragments, not ${fragments.length}`);
    return map;
  });
  const [first] = found;
  if (first === undefined) throw invalid('', 'a rendition has no fragments');
  const stranger = found.findIndex((map) => map !== first);
  if (stranger !== -1) throw invalid(fragments[stranger] ?? '', 'it is bound to the map of another rendition');
  return first;
}

function mapOf({ digest, c2pa }: RehashedFile, path: string, position: number, maps: readonly StoredMap[]): StoredMap {
  const [box] = c2pa;
  if (c2pa.length !== 1 || box?.purpose !== 'merkle') throw invalid(path, 'it has not exactly one Merkle box');
  const location = readStoredLocation(box.content);
  if (location === undefined) throw invalid(path, 'its Merkle box cannot be read');
  if (location.location !== position)
    throw invalid(path, `it says it is fragment ${location.location}, not ${position}`);
  const map = maps.find(({ uniqueId, localId }) => uniqueId === location.uniqueId && localId === location.localId);
  if (map === undefined || map.alg !== ALGORITHM) throw invalid(path, 'the manifest has no map for it');
  if (!isBound(digest, location, map)) throw invalid(path, 'its hash is not the one in the manifest');
  return map;
}

async function rehash(output: Pick<SourceFolder, 'open'>, path: string, signal: AbortSignal): Promise<RehashedFile> {
  const source = await output.open(path, signal);
  try {
    return await rehashFile(source, ALGORITHM, signal);
  } finally {
    await source.close();
  }
}

function invalid(file: string, problem: string): AppError {
  return new AppError('OUTPUT_PART_INVALID', { file, problem });
}
