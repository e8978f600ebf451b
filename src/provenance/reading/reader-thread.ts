import { closeSync, openSync, statSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { WasmReader } from '@contentauth/c2pa-wasm';
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

// A thread of `../reader-threads.ts`: answers one task after the other.

parentPort?.on('message', async (task: ReadingTask) => parentPort?.postMessage(await answerOf(task)));

/** An asset that is read: a file of this host, bytes, or a fragment with its init segment. */
export type ReadableAsset =
  | { readonly path: string; readonly mediaType: string }
  | { readonly bytes: Uint8Array; readonly mediaType: string }
  | { readonly init: Uint8Array; readonly fragment: Uint8Array };

export interface ReadingTask {
  readonly asset: ReadableAsset;
  /** Trust anchors in PEM, null for none; or the lists of publishers, for a report on identity assertions. */
  readonly anchors: string | PublisherLists | null;
  /** `results` is a report without the manifests, which list every digest of the binding; `crjson` is the complete description. */
  readonly answer: 'results' | 'report' | 'crjson';
}

/** The answer of a thread: crJSON as text, or the report; or why the reader cannot read the asset at all. */
export type ReadingAnswer<Answer extends ReadingTask['answer']> =
  | (Answer extends 'crjson' ? { readonly text: string } : { readonly report: ManifestReport })
  | { readonly problem: string };

/**
 * Reads an asset with the WASM build of the official reader, which the first call loads. A call blocks its thread: for a fragment
 * some milliseconds, up to 80 where the manifest holds 10,000 hashes.
 */
export async function answerOf<Answer extends ReadingTask['answer']>({
  asset,
  anchors,
  answer,
}: ReadingTask & { readonly answer: Answer }): Promise<ReadingAnswer<Answer>> {
  const settings =
    typeof anchors === 'object' && anchors !== null ? identitySettings(anchors) : readerSettings(anchors);
  const Reader = await wasmReader();
  const descriptor = 'path' in asset ? openSync(asset.path, 'r') : null;
  let reader: WasmReader | undefined;
  try {
    reader =
      'init' in asset
        ? await Reader.fromBlobFragment('video/mp4', blobOf(asset.init), blobOf(asset.fragment), settings)
        : await Reader.fromBlob(
            asset.mediaType,
            'path' in asset ? fileBlobOf(descriptor as number, statSync(asset.path).size) : blobOf(asset.bytes),
            settings,
          );
    return answerBy(reader, answer) as ReadingAnswer<Answer>;
  } catch (error) {
    return { problem: sdkProblem(error) };
  } finally {
    reader?.free();
    if (descriptor !== null) closeSync(descriptor);
  }
}

function answerBy(reader: WasmReader, answer: ReadingTask['answer']): { text: string } | { report: ManifestReport } {
  if (answer === 'crjson') return { text: reader.crJson() };
  // As an object the report takes a third of the time that it takes as text: it lists every digest of the binding.
  const report = reader.manifestStore() as ManifestReport;
  return { report: answer === 'report' ? report : { ...report, manifests: {} } };
}
