import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type * as C2paWasm from '@contentauth/c2pa-wasm';
import { AppError } from '#errors/app-error.ts';
import { namedProblems, problemsOf } from './output-reader.ts';
import type { ManifestReport } from './sdk.ts';
import { sdkProblem } from './sdk-problem.ts';

/** Reads single fragments, each with its init segment. */
export interface FragmentReader {
  /**
   * Rejects with `OUTPUT_PART_INVALID`, which tells `name`, unless the fragment is valid under the manifest of its init
   * segment. As for files, only the missing trust in the signing credential is tolerated.
   */
  readBack(init: Uint8Array, fragment: Uint8Array, name: string, signal: AbortSignal): Promise<void>;
  /** The validation results that an ingredient carries; null where the reader cannot read the two at all. */
  validationResults(init: Uint8Array, fragment: Uint8Array, signal: AbortSignal): Promise<object | null>;
}

const MEDIA_TYPE = 'video/mp4';
/** Nothing is ever fetched because a file names an address. */
const SETTINGS = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false } });

/**
 * Makes a reader of single fragments. Only the WASM build of the official reader can read those: it is what players in
 * browsers use. It is loaded by the first check. A check blocks its thread for some milliseconds, up to 80 where the
 * manifest holds 10,000 hashes.
 */
export function createFragmentReader(): FragmentReader {
  return {
    async readBack(init, fragment, name, signal) {
      signal.throwIfAborted();
      const problems = namedProblems(await findProblems(init, fragment));
      if (problems.length > 0) throw new AppError('OUTPUT_PART_INVALID', { file: name, problem: problems.join(', ') });
    },
    async validationResults(init, fragment, signal) {
      signal.throwIfAborted();
      try {
        const report = await read(init, fragment, (reader) => JSON.parse(reader.json()) as ManifestReport);
        return report.validation_results ?? null;
      } catch {
        // A publication that the reader cannot read is attached as an ingredient without results.
        return null;
      }
    },
  };
}

async function findProblems(init: Uint8Array, fragment: Uint8Array): Promise<string[]> {
  try {
    // As an object the report costs a third of what it does as text: it lists every digest of the binding.
    return await read(init, fragment, (reader) => problemsOf(reader.manifestStore() as ManifestReport));
  } catch (cause) {
    return [sdkProblem(cause)];
  }
}

/** Has the reader look at a fragment, and returns what is taken from what it found. */
async function read<T>(init: Uint8Array, fragment: Uint8Array, take: (reader: C2paWasm.WasmReader) => T): Promise<T> {
  const { WasmReader } = await wasm();
  const reader = await WasmReader.fromBlobFragment(MEDIA_TYPE, blobOf(init), blobOf(fragment), SETTINGS);
  try {
    return take(reader);
  } finally {
    reader.free();
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
