import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { WasmReader } from '@contentauth/c2pa-wasm';

/** What every call of it states: nothing is ever fetched because a file names an address. */
export const SETTINGS = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false } });

let loading: Promise<typeof WasmReader> | undefined;

/** The official reader in its build for browsers, the only one that reads a fragment alone. Loaded by the first call. */
export function wasmReader(): Promise<typeof WasmReader> {
  loading ??= loadWasmReader();
  return loading;
}

async function loadWasmReader(): Promise<typeof WasmReader> {
  // It is made for browsers' workers, where blobs can be read synchronously.
  Object.assign(globalThis, { FileReaderSync: InMemoryReader });
  const { default: initialize, WasmReader: Reader } = await import('@contentauth/c2pa-wasm');
  const path = fileURLToPath(import.meta.resolve('@contentauth/c2pa-wasm/c2pa.wasm'));
  await initialize({ module_or_path: await readFile(path) });
  return Reader;
}

/** Bytes in memory as what the reader takes: as much of a browser's Blob as it needs. */
export function blobOf(bytes: Uint8Array): Blob {
  return new InMemoryBlob(bytes) as unknown as Blob;
}

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
