import { closeSync, openSync, statSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { ManifestReport } from '../validation-report.ts';
import {
  blobOf,
  fileBlobOf,
  identitySettings,
  type PublisherLists,
  readerSettings,
  wasmReader,
} from './wasm-reader.ts';

// A thread of `fragment-reader.ts` or `asset-reader.ts`: answers one message after the other.

parentPort?.on('message', async (message: FragmentMessage | AssetTask) => {
  parentPort?.postMessage('asset' in message ? await readAsset(message) : await readFragment(message));
});

/** A fragment and its init segment, as they are sent to a thread. */
export interface FragmentMessage {
  readonly init: Uint8Array;
  readonly fragment: Uint8Array;
  /** `results` leaves the manifests out of the report: they list every digest of the binding. */
  readonly detail: 'results' | 'full';
  /** Trust anchors in PEM; null for none. */
  readonly anchors: string | null;
}

/** The answer of a thread: the report, or why the reader cannot read the fragment at all. */
export type FragmentReport = { readonly report: ManifestReport } | { readonly problem: string };

const MEDIA_TYPE = 'video/mp4';

/**
 * Validates a fragment under its init segment with the WASM build of the official reader, which the first call loads. A call
 * blocks its thread for some milliseconds, up to 80 where the manifest holds 10,000 hashes.
 */
export async function readFragment({ init, fragment, detail, anchors }: FragmentMessage): Promise<FragmentReport> {
  const WasmReader = await wasmReader();
  try {
    const reader = await WasmReader.fromBlobFragment(
      MEDIA_TYPE,
      blobOf(init),
      blobOf(fragment),
      readerSettings(anchors),
    );
    try {
      // As an object the report takes a third of the time that it takes as text: it lists every digest of the binding.
      const report = reader.manifestStore() as ManifestReport;
      if (detail === 'full') return { report };
      return { report: { ...report, manifests: {} } };
    } finally {
      reader.free();
    }
  } catch (error) {
    return { problem: sdkProblem(error) };
  }
}

/** An asset that is read: a file of this host, bytes, or a fragment with its init segment. */
export type CrJsonAsset =
  | { readonly path: string; readonly mediaType: string }
  | { readonly bytes: Uint8Array; readonly mediaType: string }
  | { readonly init: Uint8Array; readonly fragment: Uint8Array };

/** The answer: crJSON as text, or the report; or why there is none. */
export type AssetAnswer<Answer extends AssetTask['answer']> =
  | (Answer extends 'crjson' ? { readonly text: string } : { readonly report: ManifestReport })
  | { readonly problem: string };

/** An asset, and trust anchors in PEM, null for none; or the lists of publishers, for a report on its identity assertions. */
export interface AssetTask {
  readonly asset: CrJsonAsset;
  readonly anchors: string | PublisherLists | null;
  readonly answer: 'crjson' | 'report';
}

async function readAsset({
  asset,
  anchors,
  answer,
}: AssetTask): Promise<AssetAnswer<'crjson'> | AssetAnswer<'report'>> {
  const settings =
    typeof anchors === 'object' && anchors !== null ? identitySettings(anchors) : readerSettings(anchors);
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
    return answer === 'crjson' ? { text: reader.crJson() } : { report: reader.manifestStore() as ManifestReport };
  } catch (error) {
    return { problem: sdkProblem(error) };
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
