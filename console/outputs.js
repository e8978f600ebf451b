import { addressOf, call } from './api.js';

/** @typedef {{ path: string, size_bytes: number }} OutputFile */

/**
 * Returns the address of a file of an output.
 * @param {string} jobId
 * @param {string | number} index
 * @param {string} path
 */
export function outputAddress(jobId, index, path) {
  return addressOf(
    `v2/jobs/${encodeURIComponent(jobId)}/outputs/${index}/${path.split('/').map(encodeURIComponent).join('/')}`,
  );
}

/**
 * Lists the files of an output.
 * @param {string} jobId
 * @param {string | number} index
 * @returns {Promise<OutputFile[]>}
 */
export async function listOutput(jobId, index) {
  return (await call('GET', `v2/jobs/${encodeURIComponent(jobId)}/outputs/${index}`)).files;
}

/**
 * Returns the file that a player opens first: the playlist of a publication that lies highest and is named like a main one,
 * or the single file.
 * @param {readonly OutputFile[]} files
 */
export function entryOf(files) {
  const playlists = files.filter(({ path }) => /\.m3u8$/i.test(path));
  if (playlists.length === 0) return files.length === 1 ? files[0] : undefined;
  const rank = (/** @type {OutputFile} */ { path }) =>
    path.split('/').length * 2 - Number(/(^|\/)(master|main|index|manifest)[^/]*$/i.test(path));
  return playlists.reduce((best, file) => (rank(file) < rank(best) ? file : best));
}
