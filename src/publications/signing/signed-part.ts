import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import { type MediaPart, partKey } from '../publication.ts';
import type { OutputPaths } from './output-paths.ts';

/** A part of a publication as it stands in the output. */
export interface SignedPart {
  readonly source: MediaPart;
  /** Where it lies in the output folder. */
  readonly path: string;
  /** What signing added, in bytes; negative where an earlier, larger Merkle box went. */
  readonly addedBytes: number;
  /** Size of its Merkle box in the output; 0 for init segments. */
  readonly merkleBoxSizeBytes: number;
}

/** All parts by `partKey` of their source. */
export type SignedParts = ReadonlyMap<string, SignedPart>;

/** A part that became `outputBytes` in the output. `source` is the file that it lies in. */
export function signedPart(
  source: MediaPart,
  paths: OutputPaths,
  outputBytes: number,
  { sizeBytes: fileBytes }: ByteSource,
  merkleBoxBytes: number,
): SignedPart {
  const path = paths.get(partKey(source));
  assert(path !== undefined, 'every part of the publication has a path in the output');
  const addedBytes = outputBytes - (source.range?.length ?? fileBytes);
  return { source, path, addedBytes, merkleBoxSizeBytes: merkleBoxBytes };
}
