import { closeSync, openSync, statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import { blobOf, fileBlobOf, readerSettings, wasmReader } from './wasm-reader.ts';

// A thread of `createCrJsonReader`: reads one asset, answers, and ends.

/** An asset that is read: a file of this host, bytes, or a fragment with its init segment. */
export type CrJsonAsset =
  | { readonly path: string; readonly mediaType: string }
  | { readonly bytes: Uint8Array; readonly mediaType: string }
  | { readonly init: Uint8Array; readonly fragment: Uint8Array };

/** The answer: crJSON as text, or why there is none. */
export type CrJsonAnswer = { readonly text: string } | { readonly problem: string };

/** An asset, and trust anchors in PEM; null for none. */
export interface CrJsonTask {
  readonly asset: CrJsonAsset;
  readonly anchors: string | null;
}

if (parentPort !== null) parentPort.postMessage(await readCrJson(workerData as CrJsonTask));

async function readCrJson({ asset, anchors }: CrJsonTask): Promise<CrJsonAnswer> {
  const settings = readerSettings(anchors);
  const WasmReader = await wasmReader();
  const descriptor = 'path' in asset ? openSync(asset.path, 'r') : null;
  try {
    const reader =
      'init' in asset
        ? await WasmReader.fromBlobFragment('video/mp4', blobOf(asset.init), blobOf(asset.fragment), settings)
        : await WasmReader.fromBlob(
            asset.mediaType,
            'path' in asset ? fileBlobOf(descriptor as number, statSync(asset.path).size) : blobOf(asset.bytes),
            settings,
          );
    return { text: reader.crJson() };
  } catch (error) {
    return { problem: sdkProblem(error) };
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
