import { call } from './api.js';
import { holdsUnsigned } from './c2pa-boxes.js';
import { mediaTypeOf } from './media-type.js';

/**
 * @typedef {import('./reader-worker.js').ReadRequest} ReadRequest
 * @typedef {import('./reader-worker.js').ReadAnswer} ReadAnswer
 * @typedef {import('../src/contract/verification.ts').Verification} Verification
 * @typedef {Verification['state']} State
 * @typedef {{ verification: Verification, raw: Blob | null }} Reading what was found, and the report as JSON
 */

/**
 * Files of more bytes take a browser long: it reads some 100 MB a second. It reads them in slices, so that memory is no limit
 * (4.5 GB were tried).
 */
export const LARGE_FILE_BYTES = 1_000_000_000;

/** The code that the service gives media that no hash covers. */
const UNBOUND = 'assertion.bmffHash.additionalExclusionsPresent';

/** What the official reader does not look for, and the service does (`left-out.ts`). */
const NOT_LOOKED_AT =
  'This browser did not look for media in the bytes that the signature leaves out, nor for text that leads players to other files: have the service verify the file by its path or address.';

/** @type {Worker | undefined} */
let worker;
let lastId = 0;
/** @type {Map<number, (answer: ReadAnswer) => void>} */
const waiting = new Map();
/** @type {Promise<import('./reader-worker.js').TrustLists> | undefined} */
let trust;

/**
 * Validates a file with the official reader, and says what that does not look at. Nothing leaves the browser. Throws an Error that says why there is nothing to judge.
 * @param {Blob} file
 * @param {string} name
 * @param {AbortSignal} signal
 * @returns {Promise<Reading>}
 */
export async function readFile(file, name, signal) {
  const mediaType = await mediaTypeOf(file);
  if (mediaType === null) {
    throw new Error(
      `"${name}" is none of the media that the reader knows: it begins like none of their formats. A manifest in a file of its own (.c2pa) is found by the service: verify it there.`,
    );
  }
  const reading = await read({ mediaType, blob: file, detailed: true }, signal);
  if (!isIntact(reading)) return reading;
  const { verification, ...rest } = reading;
  return { ...rest, verification: { ...verification, summary: `${verification.summary} ${NOT_LOOKED_AT}` } };
}

/**
 * Validates a fragment under its init segment.
 * @param {Blob} init
 * @param {Blob} fragment
 * @param {boolean} detailed
 * @returns {Promise<Reading>}
 */
export async function readFragment(init, fragment, detailed) {
  const reading = await read({ mediaType: 'video/mp4', blob: init, fragment, detailed });
  const isUnbound = isIntact(reading) && ((await holdsUnsigned(init)) || (await holdsUnsigned(fragment)));
  return isUnbound
    ? failed(reading, UNBOUND, 'Players find media in parts of it that the binding leaves out.')
    : reading;
}

/**
 * Returns a reading that says what the official reader does not look at: it is invalid for it.
 * @param {Reading} reading
 * @param {string} code
 * @param {string} summary
 * @returns {Reading}
 */
export function failed({ verification, ...reading }, code, summary) {
  const codes = [
    ...verification.codes,
    { code, kind: /** @type {const} */ ('failure'), explanation: summary, count: 1 },
  ];
  // Nobody vouches for what was changed.
  const manifests = verification.manifests.map(({ identity_assertions: _, ...manifest }) => manifest);
  return { ...reading, verification: { ...verification, state: 'invalid', summary, codes, manifests } };
}

/** @param {Reading} reading */
export function isIntact({ verification: { state } }) {
  return state === 'valid' || state === 'trusted';
}

/**
 * @param {Omit<ReadRequest, 'id' | 'trust'>} request
 * @param {AbortSignal} [signal]
 * @returns {Promise<Reading>}
 */
async function read(request, signal) {
  const { verification, raw = null, problem = '', isBroken } = await ask(request, signal);
  if (verification !== undefined) return { verification, raw };
  throw new Error(
    isBroken
      ? `The reader of this browser gave up, as it does where memory is short: ${problem}`
      : `The file is damaged, or not what its first bytes say. The reader says: ${problem}`,
  );
}

/**
 * @param {Omit<ReadRequest, 'id' | 'trust'>} request
 * @param {AbortSignal} [signal] ends the worker, which nothing else can interrupt
 * @returns {Promise<ReadAnswer>}
 */
async function ask(request, signal) {
  const lists = await trustLists();
  signal?.throwIfAborted();
  worker ??= startWorker();
  const asked = worker;
  lastId += 1;
  const id = lastId;
  const { promise, resolve } = /** @type {PromiseWithResolvers<ReadAnswer>} */ (Promise.withResolvers());
  waiting.set(id, resolve);
  signal?.addEventListener('abort', () => {
    if (waiting.has(id)) replace(asked, 'it was ended');
  });
  asked.postMessage({ id, ...request, trust: lists });
  return await promise;
}

/** Loads the trust lists of the service once. If there are none, signers are on no list. */
function trustLists() {
  trust ??= call('GET', 'v2/trust-lists').catch(() => {
    trust = undefined;
    return { signers: [], authorities: [] };
  });
  return trust;
}

/** Starts the worker. One that fails, for want of memory for example, is replaced by the next request. */
function startWorker() {
  const started = new Worker(new URL('./reader-worker.js', import.meta.url), { type: 'module' });
  started.addEventListener('message', (/** @type {MessageEvent<ReadAnswer>} */ { data }) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
    if (data.isBroken) replace(started, data.problem ?? '');
  });
  started.addEventListener('error', ({ message }) => replace(started, message || 'it could not be started'));
  return started;
}

/**
 * @param {Worker} broken
 * @param {string} problem
 */
function replace(broken, problem) {
  broken.terminate();
  if (worker === broken) worker = undefined;
  for (const [id, answer] of waiting) answer({ id, problem, isBroken: true });
  waiting.clear();
}
