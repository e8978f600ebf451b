import { blobOf, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { type ManifestStore, type ProvenanceReport, reportOf } from './provenance-report.ts';

/** Nothing is ever fetched because a file names an address. */
const SETTINGS = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false } });

/** Returns the report of the official reader, in the build for browsers, on one fragment with its init segment. */
export async function readFragmentProvenance(init: Uint8Array, fragment: Uint8Array): Promise<ProvenanceReport> {
  return reportOf(await readFragmentStore(init, fragment));
}

/** The reader's own words on one fragment. */
export async function readFragmentStore(init: Uint8Array, fragment: Uint8Array): Promise<ManifestStore> {
  const WasmReader = await wasmReader();
  const reader = await WasmReader.fromBlobFragment('video/mp4', blobOf(init), blobOf(fragment), SETTINGS);
  try {
    return JSON.parse(reader.json()) as ManifestStore;
  } finally {
    reader.free();
  }
}
