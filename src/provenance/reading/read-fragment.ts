import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type * as C2paWasm from '@contentauth/c2pa-wasm';
import type { ManifestReport } from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';

/** What the reader says of a fragment: validation results, or why it cannot read it at all. */
export type FragmentFindings =
  | { readonly results: NonNullable<ManifestReport['validation_results']> | null }
  | { readonly problem: string };

const MEDIA_TYPE = 'video/mp4';
/** Nothing is ever fetched because a file names an address. */
const SETTINGS = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false } });

/**
 * Has the WASM build of the official reader look at a fragment under its init segment. It is loaded by the first call. A
 * call blocks its thread for some milliseconds, up to 80 where the manifest holds 10,000 hashes.
 */
export async function readFragment(init: Uint8Array, fragment: Uint8Array): Promise<FragmentFindings> {
  const { WasmReader } = await wasm();
  try {
    const reader = await WasmReader.fromBlobFragment(MEDIA_TYPE, blobOf(init), blobOf(fragment), SETTINGS);
    try {
      // As an object the report costs a third of what it does as text: it lists every digest of the binding.
      return { results: (reader.manifestStore() as ManifestReport).validation_results ?? null };
    } finally {
      reader.free();
    }
  } catch (error) {
    return { problem: sdkProblem(error) };
  }
}

let loading: Promise<typeof C2paWasm> | undefined;

function wasm(): Promise<typeof C2paWasm> {
  loading ??= loadWasm();
  return loading;
}

async function loadWasm(): Promise<typeof C2paWasm> {
  // It is made for browsers' workers, where blobs can be read synchronously.
  Object.assign(globalThis, { FileReaderSync: InMemoryReader });
  const module = await import('@contentauth/c2pa-wasm');
  const path = fileURLToPath(import.meta.resolve('@contentauth/c2pa-wasm/c2pa.wasm'));
  await module.default({ module_or_path: await readFile(path) });
  return module;
}

/** What the WASM reader needs of a browser's Blob, over bytes in memory. */
class InMemoryBlob {
  readonly type = '';
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get size(): number {
    return this.bytes.length;
  }

  slice(start: number | bigint, end: number | bigint): InMemoryBlob {
    return new InMemoryBlob(this.bytes.subarray(Number(start), Number(end)));
  }
}

/** A browser's FileReaderSync for such blobs. */
class InMemoryReader {
  readAsArrayBuffer({ bytes }: InMemoryBlob): ArrayBuffer {
    return new Uint8Array(bytes).buffer;
  }
}

function blobOf(bytes: Uint8Array): Blob {
  return new InMemoryBlob(bytes) as unknown as Blob;
}
