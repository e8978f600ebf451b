/**
 * @typedef {import('./reader-worker.js').ReadAnswer} ReadAnswer
 * @typedef {'trusted' | 'valid' | 'invalid' | 'none'} State
 * @typedef {{ code: string, explanation?: string, url?: string }} ValidationCode
 * @typedef {object} Verdict
 * @property {State} state
 * @property {ValidationCode[]} failures
 * @property {any} store the manifest store; null when there is none that can be read
 * @property {string} problem why nothing could be read; empty otherwise
 */

/** Largest file that is read in the browser, in bytes: WebAssembly addresses 4 GB, and the reader takes more than the file. */
export const MAX_FILE_BYTES = 1_000_000_000;

/** @type {Worker | undefined} */
let worker;
let lastId = 0;
/** @type {Map<number, (answer: ReadAnswer) => void>} */
const waiting = new Map();

/**
 * Validates a file, or a fragment under its init segment, with the official reader. Nothing leaves the browser.
 * @param {Blob} blob the file, or the init segment
 * @param {string} mediaType
 * @param {Blob} [fragment]
 * @returns {Promise<Verdict>}
 */
export async function verify(blob, mediaType, fragment) {
  return verdictOf(await ask({ mediaType, blob, ...(fragment && { fragment }) }));
}

/**
 * @param {Omit<import('./reader-worker.js').ReadRequest, 'id'>} request
 * @returns {Promise<ReadAnswer>}
 */
function ask(request) {
  worker ??= startWorker();
  lastId += 1;
  const id = lastId;
  const { promise, resolve } = /** @type {PromiseWithResolvers<ReadAnswer>} */ (Promise.withResolvers());
  waiting.set(id, resolve);
  worker.postMessage({ id, ...request });
  return promise;
}

/** Starts the worker. One that fails, for want of memory for example, is replaced by the next request. */
function startWorker() {
  const started = new Worker(new URL('./reader-worker.js', import.meta.url), { type: 'module' });
  started.addEventListener('message', ({ data }) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  });
  started.addEventListener('error', ({ message }) => {
    started.terminate();
    worker = undefined;
    for (const [id, answer] of waiting) answer({ id, problem: message || 'The reader could not be started.' });
    waiting.clear();
  });
  return started;
}

/**
 * @param {ReadAnswer} answer
 * @returns {Verdict}
 */
function verdictOf({ store, problem = '' }) {
  if (store === undefined) {
    const state = /no JUMBF|JumbfNotFound|not found|UnsupportedType|not supported/i.test(problem) ? 'none' : 'invalid';
    return { state, failures: [], store: null, problem };
  }
  const states = /** @type {Record<string, State>} */ ({ Trusted: 'trusted', Valid: 'valid' });
  /** @type {ValidationCode[]} */
  const codes = store.validation_results?.activeManifest?.failure ?? store.validation_status ?? [];
  // A signer that is on no list is a matter of trust: the state says so, and nothing is broken.
  const failures = codes.filter(({ code }) => !/\.untrusted$/.test(code));
  return { state: states[store.validation_state] ?? 'invalid', failures, store, problem: '' };
}
