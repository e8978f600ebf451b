// The official reader (WebAssembly) in a web worker: it validates files and fragments beside the page.

/** Nothing that a manifest refers to is fetched. */
const SETTINGS = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false } });

const loaded = loadReader();

/** Loads the reader once, under the names that the service serves it by: a worker has no import map. */
async function loadReader() {
  /** @type {typeof import('@contentauth/c2pa-wasm')} */
  const { default: init, WasmReader } = await import(new URL('./vendor/c2pa.js', import.meta.url).href);
  await init({ module_or_path: new URL('./vendor/c2pa_bg.wasm', import.meta.url) });
  return WasmReader;
}

/**
 * @typedef {{ id: number, mediaType: string, blob: Blob, fragment?: Blob }} ReadRequest
 * @typedef {{ id: number, store?: any, problem?: string }} ReadAnswer the manifest store as the reader reports it, or why there is none
 */

addEventListener('message', async (/** @type {MessageEvent<ReadRequest>} */ { data }) => {
  const { id, mediaType, blob, fragment } = data;
  try {
    const WasmReader = await loaded;
    const reader = await (fragment === undefined
      ? WasmReader.fromBlob(mediaType, blob, SETTINGS)
      : WasmReader.fromBlobFragment(mediaType, blob, fragment, SETTINGS));
    const json = reader.json();
    reader.free();
    postMessage({ id, store: JSON.parse(json) });
  } catch (error) {
    postMessage({ id, problem: error instanceof Error ? error.message : String(error) });
  }
});
