import { signal } from '@preact/signals';

/** @typedef {import('../src/contract/job.ts').JobResultResponse} Job */
/** @typedef {import('../src/contract/job.ts').JobResultEntry} ResultEntry */
/** @typedef {import('../src/contract/job-list.ts').JobListResponse} JobList */
/** @typedef {import('../src/contract/job-list.ts').ListedJob} ListedJob */

/** True while the service asks for a login. */
export const loginNeeded = signal(false);

/** The time of the last answer, in milliseconds since 1970, while the service cannot be reached; null while it can. */
export const offlineSince = signal(/** @type {number | null} */ (null));

/** The page itself was an answer. */
let answeredAtMs = Date.now();

/** Records whether the service has just answered. @param {boolean} hasAnswered */
export function noteAnswer(hasAnswered) {
  if (hasAnswered) answeredAtMs = Date.now();
  offlineSince.value = hasAnswered ? null : answeredAtMs;
}

/** An answer of the service that is an error, or the lack of an answer (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{ code?: string, message: string, details?: { field?: string, input_index?: number } }} error
   */
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code ?? '';
    this.details = error.details ?? {};
  }
}

/**
 * Returns the absolute address of a path of the API. Paths are relative to the page, so the console works behind a prefix.
 * @param {string} path for example "v2/jobs"
 */
export function addressOf(path) {
  return new URL(path, document.baseURI).href;
}

/**
 * Sends a request and returns the JSON of the answer. Throws an ApiError that says what went wrong.
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<any>}
 */
export async function call(method, path, { body, headers, signal: abort } = {}) {
  const response = await send(method, path, {
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(abort !== undefined && { signal: abort }),
  });
  if (response.ok) return response.status === 204 ? null : await response.json();
  throw await errorOf(response);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {RequestInit} init
 */
async function send(method, path, init) {
  try {
    const response = await fetch(addressOf(path), { method, credentials: 'same-origin', ...init });
    noteAnswer(true);
    return response;
  } catch (error) {
    if (init.signal?.aborted) throw error;
    noteAnswer(false);
    throw new ApiError(0, { message: 'The service cannot be reached. The page tries again by itself.' });
  }
}

/** @param {Response} response */
async function errorOf(response) {
  if (response.status === 401) loginNeeded.value = true;
  const answer = await response.json().catch(() => null);
  return new ApiError(
    response.status,
    answer?.error ?? { message: `The service answered with status ${response.status}.` },
  );
}

/**
 * Calls a function now and again after each interval while the page is visible, until the signal is aborted. Errors are the
 * function's own business.
 * @param {() => Promise<void>} look
 * @param {number} intervalMs
 * @param {AbortSignal} signal
 */
export async function poll(look, intervalMs, signal) {
  while (!signal.aborted) {
    if (!document.hidden) await look();
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}
