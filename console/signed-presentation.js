import { PRESENTATION_ALGORITHM, PRESENTATION_LABEL, PRESENTATION_VERSION } from './shared/presentation.js';

/** @typedef {{ uris: { uri: string, size: number, hash: string }[] } | { count: number, hash: string }} Presentation */

/** What is said of intact fragments while it is not known that they play as they were signed. */
export const LOADED =
  'Every fragment that was loaded is as it was signed. The playlists were not compared: the choice and order of fragments, names, languages and text are not covered';

/** What is said of an intact fragment where others are not. */
export const PART = 'This part is as it was signed, and others are not';

/** Ends a notice about playlists that cannot be compared. */
export const CANNOT_SAY =
  'cannot say whether all that was signed plays, once and in order. Inspect has the service verify that.';

/**
 * Returns the presentation of a report's active manifest; null where it states none, or why it cannot be compared with.
 * @param {any} report
 * @returns {Presentation | { problem: string } | null}
 */
export function presentationIn({ manifests, active_manifest: active }) {
  const all = /** @type {any[]} */ (manifests[active]?.assertions ?? []);
  const stated = all.filter(
    ({ label, created }) => created === true && label.replace(/__\d+$/, '') === PRESENTATION_LABEL,
  );
  if (stated.length === 0) return null;
  const [{ data }] = stated;
  if (data.version > PRESENTATION_VERSION) return null;
  const isKnown = data.version === PRESENTATION_VERSION && data.alg === PRESENTATION_ALGORITHM;
  return isKnown && stated.length === 1 && (Array.isArray(data.uris) || typeof data.hash === 'string')
    ? data
    : { problem: `The assertion ${PRESENTATION_LABEL} of the manifest is malformed, or there more than once.` };
}

/**
 * Returns the numbers of fragments that the Merkle maps of a report's active manifest bind, by `uniqueId/localId`.
 * @param {any} report
 * @returns {ReadonlyMap<string, number>}
 */
export function countsIn({ manifests, active_manifest: active }) {
  const bindings = manifests[active].assertions.filter((/** @type {any} */ { label }) =>
    label.startsWith('c2pa.hash.bmff'),
  );
  const maps = bindings.flatMap((/** @type {any} */ { data }) => data.merkle ?? []);
  return new Map(maps.map((/** @type {any} */ map) => [`${map.uniqueId}/${map.localId}`, map.count]));
}

/**
 * Returns what a presentation says of the texts of playlists alone; null where a digest over all says it together with the rest.
 * @param {Presentation} signed
 * @param {number} count of loaded playlists
 * @returns {any}
 */
export function textsOf(signed, count) {
  if ('uris' in signed) return { uris: signed.uris.map(({ uri, size, hash }) => ({ uri, size, hash })) };
  return count === signed.count ? null : signed;
}

/**
 * Returns the folder that was signed, by the path of the entry among the signed ones; the folder of the entry where it is none.
 * @param {string} entry
 * @param {Presentation} signed
 */
export function rootOf(entry, signed) {
  const folder = new URL('.', entry);
  const path = decoded(new URL(entry).pathname);
  const uris = 'uris' in signed ? signed.uris.map(({ uri }) => uri) : [];
  const depth = uris.filter((uri) => path.normalize('NFC').endsWith(`/${uri}`)).map((uri) => uri.split('/').length - 1);
  return new URL('../'.repeat(Math.max(0, ...depth)), folder).href;
}

/**
 * Returns a path below a folder; the address itself for one elsewhere.
 * @param {string} root
 * @param {string} url
 */
export function pathBelow(root, url) {
  return url.startsWith(root) ? decoded(new URL(url).pathname.slice(new URL(root).pathname.length)) : url;
}

/** @param {string} path */
function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
