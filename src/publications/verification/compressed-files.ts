import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { FoundInPlaylist } from './playlist-findings.ts';

type Decompress = (bytes: Buffer, limits: { readonly maxOutputLength: number }) => Buffer;

/** Ends of names of files that servers may send in place of those without them (`gzip_static` of nginx, and others alike). */
const COMPRESSED: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ['.gz', gunzipSync],
  ['.br', brotliDecompressSync],
  ['.zst', zstdDecompressSync],
  ['.deflate', inflateSync],
]);

/** Files that are compared; nobody keeps larger ones compressed. */
const MAX_COMPARED_BYTES = 32 * 1024 * 1024;

/** Finds files that servers may send in place of others, and that hold something else. */
export async function findCompressedFiles(folder: SourceFolder, signal: AbortSignal): Promise<FoundInPlaylist[]> {
  const paths = new Set(folder.files.map(({ path }) => path));
  const findings: FoundInPlaylist[] = [];
  for (const playlist of paths) {
    const [end, decompress] = [...COMPRESSED].find(([each]) => playlist.endsWith(each)) ?? [];
    const plain = playlist.slice(0, -(end?.length ?? 0));
    if (decompress === undefined || !paths.has(plain)) continue;
    if (await holdsSame(folder, plain, playlist, decompress, signal)) continue;
    const problem = `some servers send it in place of "${plain}"`;
    findings.push({ playlist, line: 1, kind: 'ambiguous', problem, isOfFolder: true });
  }
  return findings;
}

async function holdsSame(
  folder: SourceFolder,
  plain: string,
  compressed: string,
  decompress: Decompress,
  signal: AbortSignal,
): Promise<boolean> {
  const [bytes, expected] = [await readSmall(folder, compressed, signal), await readSmall(folder, plain, signal)];
  if (bytes === null || expected === null) return false;
  try {
    return decompress(bytes, { maxOutputLength: expected.length + 1 }).equals(expected);
  } catch {
    // It is damaged, or larger.
    return false;
  }
}

async function readSmall(folder: SourceFolder, path: string, signal: AbortSignal): Promise<Buffer | null> {
  const source: ByteSource = await folder.open(path, signal);
  try {
    return source.sizeBytes > MAX_COMPARED_BYTES ? null : await readRange(source, 0, source.sizeBytes, signal);
  } finally {
    await source.close();
  }
}
