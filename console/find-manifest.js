import { storeIn } from './c2pa-boxes.js';
import { fetchIfThere, keyOf } from './playlists.js';
import { MAX_TRIED_FRAGMENTS } from './presentation.js';
import { presentationIn } from './signed-presentation.js';

/**
 * @typedef {import('./playlists.js').Fragment} Fragment
 * @typedef {import('./playlists.js').Rendition} Rendition
 * @typedef {import('./reader.js').Reading} Reading
 */

/**
 * Finds the first manifest that verifies, whatever its fragments do, and that signs playlists; the first one that verifies where none
 * does. Sections under an init segment of their own may have another manifest, or none. `isSigned` is true where there is any.
 * @param {readonly Rendition[]} renditions
 * @param {(init: Blob, fragment: Blob) => Promise<Reading>} read
 * @param {AbortSignal} signal
 * @returns {Promise<{ first: { report: any, init: Blob } | null, isSigned: boolean }>}
 */
export async function findManifest(renditions, read, signal) {
  const stores = new Set();
  let first = null;
  let isSigned = false;
  for (const section of renditions.flatMap(({ fragments }) => sectionsOf(fragments))) {
    const loaded = await firstLoaded(section, signal, stores);
    const reading = loaded && (await read(loaded.init, loaded.blob));
    isSigned ||= reading !== null && reading.verification.state !== 'none';
    if (loaded === null || reading === null || !hasValidManifest(reading)) continue;
    const found = { report: JSON.parse((await reading.raw?.text()) ?? '{}'), init: loaded.init };
    if (presentationIn(found.report) !== null) return { first: found, isSigned };
    first ??= found;
  }
  return { first, isSigned };
}

/**
 * Returns fragments by their init segments.
 * @param {readonly Fragment[]} fragments
 */
function sectionsOf(fragments) {
  return [...Map.groupBy(fragments, ({ init }) => (init === null ? '' : keyOf(init))).values()];
}

/**
 * Loads the first fragment of a section that is there, with its init segment; null where the first few are not, and where the manifest
 * store is one of `stores`, to which it is added.
 * @param {readonly Fragment[]} section
 * @param {AbortSignal} signal
 * @param {Set<string | null>} stores
 */
async function firstLoaded(section, signal, stores) {
  const own = section[0]?.init ?? null;
  const init = own && (await fetchIfThere(own, signal));
  if (init === null) return null;
  const store = await storeIn(init);
  if (stores.has(store)) return null;
  for (const { part } of section.slice(0, MAX_TRIED_FRAGMENTS)) {
    const blob = await fetchIfThere(part, signal);
    if (blob === null) continue;
    stores.add(store);
    return { init, blob };
  }
  return null;
}

/**
 * Returns true where a manifest verifies, whether a fragment is the one that it binds or not.
 * @param {Reading} reading
 */
function hasValidManifest({ verification: { state, codes } }) {
  const failures = codes.filter(({ kind, ingredient }) => kind === 'failure' && ingredient !== true);
  const isOfMedia = ({ code = '' }) => code.startsWith('assertion.bmffHash.') || code === 'signingCredential.untrusted';
  return state !== 'none' && failures.every(isOfMedia) && codes.some(({ code }) => code === 'claimSignature.validated');
}
