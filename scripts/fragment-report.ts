import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { WasmReader } from '@contentauth/c2pa-wasm';
import { type ManifestStore, type ProvenanceReport, reportOf } from './provenance-report.ts';

/** Nothing is ever fetched because a file names an address. */
const SETTINGS = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false } });

/** What the official reader, in the build that browsers use, says of one fragment under its init segment. */
export async function readFragmentProvenance(init: Uint8Array, fragment: Uint8Array): Promise<ProvenanceReport> {
  return reportOf(await readFragmentStore(init, fragment));
}

/** The reader's own words on one fragment. */
export async function readFragmentStore(init: Uint8Array, fragment: Uint8Array): Promise<ManifestStore> {
  const Reader = await wasmReader();
  const [initBlob, fragmentBlob] = [init, fragment].map((bytes) => new MemoryBlob(bytes)) as unknown as [Blob, Blob];
  const reader = await Reader.fromBlobFragment('video/mp4', initBlob, fragmentBlob, SETTINGS);
  try {
    return JSON.parse(reader.json()) as ManifestStore;
  } finally {
    reader.free();
  }
}

let loading: Promise<typeof WasmReader> | undefined;

function wasmReader(): Promise<typeof WasmReader> {
  loading ??= loadWasmReader();
  return loading;
}

async function loadWasmReader(): Promise<typeof WasmReader> {
  // The build is made for browsers' workers, which read blobs synchronously.
  Object.assign(globalThis, { FileReaderSync: MemoryBlobReader });
  const { default: initialize, WasmReader: Reader } = await import('@contentauth/c2pa-wasm');
  const path = fileURLToPath(import.meta.resolve('@contentauth/c2pa-wasm/c2pa.wasm'));
  await initialize({ module_or_path: await readFile(path) });
  return Reader;
}

/** What the reader asks of a browser's Blob, over bytes in memory. */
class MemoryBlob {
  readonly type = '';
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get size(): number {
    return this.bytes.length;
  }

  slice(start: number | bigint, end: number | bigint): MemoryBlob {
    return new MemoryBlob(this.bytes.subarray(Number(start), Number(end)));
  }
}

class MemoryBlobReader {
  readAsArrayBuffer({ bytes }: MemoryBlob): ArrayBuffer {
    return new Uint8Array(bytes).buffer;
  }
}
