import { call } from './api.js';
import { listOutput, outputAddress } from './outputs.js';
import { LARGE_FILE_BYTES, readFile } from './reader.js';

/**
 * @typedef {import('./api.js').Job} Job
 * @typedef {import('./reader.js').Reading} Reading
 * @typedef {{ type: string, path?: string, url?: string }} InputRef
 */

const LOOK_INTERVAL_MS = 250;

/**
 * Has the service verify an input, and waits for what it says. Throws the input's error as the service words it.
 * @param {InputRef} input
 * @param {{ signal: AbortSignal, onProgress?: (job: Job) => void }} options
 * @returns {Promise<Reading>}
 */
export async function verifyByService(input, { signal, onProgress }) {
  const { job_id: id } = await call('POST', 'v2/verify', {
    body: { inputs: [input], params: { report: 'detailed' } },
    signal,
  });
  for (;;) {
    /** @type {Job} */
    const job = await call('GET', `v2/jobs/${id}`, { signal });
    const [result] = job.results;
    if (result?.verification !== undefined) {
      const text = JSON.stringify(result.verification, null, 2);
      return { verification: result.verification, raw: new Blob([text]) };
    }
    if (job.status === 'failed') throw new Error(result?.error ?? 'The service could not verify it.');
    onProgress?.(job);
    await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    signal.throwIfAborted();
  }
}

/**
 * Has the service verify an output. Where it may not read its own outputs as inputs, the browser fetches the file and reads it.
 * @param {Awaited<ReturnType<typeof locateOutput>>} output
 * @param {{ signal: AbortSignal, onProgress?: (job: Job) => void, onFetch?: () => void }} options
 * @returns {Promise<Reading>}
 */
export async function verifyOutput({ input, name, file, copy }, { onFetch, ...options }) {
  try {
    return await verifyByService(input, options);
  } catch (error) {
    if (options.signal.aborted || file === undefined || file.size_bytes > LARGE_FILE_BYTES) throw error;
    onFetch?.();
    return await readAddress(copy, name, options.signal);
  }
}

/**
 * Fetches a file from this service and reads it in the browser.
 * @param {string} address
 * @param {string} name
 * @param {AbortSignal} signal
 */
export async function readAddress(address, name, signal) {
  const response = await fetch(address, { signal });
  if (!response.ok) throw new Error(`The service answered with status ${response.status}.`);
  return await readFile(await response.blob(), name, signal);
}

/**
 * Returns how the service itself refers to an output, or to a file of a publication, and what the browser can read of it: a file, by
 * the address `copy`.
 * @param {string} jobId
 * @param {string} index
 * @param {string | null} path of a file in a publication
 */
export async function locateOutput(jobId, index, path) {
  const [listed, { results }] = await Promise.all([
    listOutput(jobId, index),
    call('GET', `v2/jobs/${encodeURIComponent(jobId)}`),
  ]);
  const result = results.find((/** @type {any} */ { input_index: at }) => String(at) === index);
  const output = result?.output_path ?? result?.sidecar_path ?? '';
  const own = listed.find((file) => file.path === output.split('/').at(-1));
  const file = path === null ? own : listed.find((candidate) => candidate.path === path);
  const isFolder = own === undefined && path === null;
  if (file === undefined && (!isFolder || listed.length === 0)) throw new Error('The output is not there any more.');
  const address = own === undefined && path !== null ? `${output}/${path}` : output;
  const copy = outputAddress(jobId, index, file?.path ?? '');
  return { input: inputRef(address, isFolder), name: address.split('/').at(-1) ?? '', address, file, copy };
}

/**
 * Returns a reference to a path on the service's host or an address.
 * @param {string} address
 * @param {boolean} isFolder
 * @returns {InputRef}
 */
export function inputRef(address, isFolder) {
  const kind = isFolder ? 'folder' : 'file';
  return /^(?:https?|s3):\/\//i.test(address)
    ? { type: `remote_${kind}_url`, url: address }
    : { type: `local_${kind}_path`, path: address };
}
