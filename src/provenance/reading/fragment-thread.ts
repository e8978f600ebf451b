import { parentPort } from 'node:worker_threads';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { ManifestReport } from '../validation-report.ts';
import { blobOf, readerSettings, wasmReader } from './wasm-reader.ts';

// A thread of `createFragmentReader`: answers one message after the other.

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

parentPort?.on('message', async (message: FragmentMessage) => {
  parentPort?.postMessage(await readFragment(message));
});

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
