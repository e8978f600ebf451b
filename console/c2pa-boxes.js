import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { isExcludedType, isOfItsType, MAX_EXCLUDED_BOX_BYTES } from './shared/excluded-boxes.js';
import { readMerkleBox } from './shared/merkle-box.js';

/**
 * @typedef {object} Bound what binds a fragment and its init segment
 * @property {number} uniqueId of the Merkle map
 * @property {number} localId
 * @property {number} location of the fragment in that map, which is the position that it was signed at
 * @property {string} store digest of the manifest store in the init segment
 */

/** @typedef {{ type: string, headerSizeBytes: number, bytes: Uint8Array }} TopBox */

/** The identifier of C2PA's boxes (C2PA 2.2, §A.5.1). */
const C2PA_BOX = 'd8fec3d61b0e483c92975828877ec481';

/**
 * Returns what binds an init segment and a fragment by its Merkle box; null where nothing does.
 * @param {Blob} init
 * @param {Blob} fragment whole, or its beginning
 * @returns {Promise<Bound | null>}
 */
export async function boundIn(init, fragment) {
  const store = await storeIn(init);
  const [box, ...others] = (await c2paBoxesIn(fragment)).filter(({ purpose }) => purpose === 'merkle');
  if (store === null || box === undefined || others.length > 0) return null;
  const read = readMerkleBox(box.content);
  // It may be no Merkle box: nothing binds what it stands in.
  return read === undefined ? null : { uniqueId: read.uniqueId, localId: read.localId, location: read.location, store };
}

/** Returns the digest of the manifest store in an init segment; null without one. @param {Blob} init */
export async function storeIn(init) {
  const stores = (await c2paBoxesIn(init)).filter(({ purpose }) => purpose !== 'merkle');
  return stores.length === 0 ? null : stores.map(({ content }) => bytesToHex(sha256(content))).join();
}

/**
 * Returns true where an init segment or a fragment holds more in boxes that hashes leave out than writers put there, a file type at the
 * start and a Merkle box: players may find media in it.
 * @param {Blob} part
 */
export async function holdsUnsigned(part) {
  const boxes = await boxesIn(part);
  const isFileType = (/** @type {TopBox} */ box) =>
    box === boxes[0] &&
    box.type === 'ftyp' &&
    box.bytes.length <= MAX_EXCLUDED_BOX_BYTES &&
    isOfItsType(box, contentOf(box));
  const merkle = (await c2paBoxesIn(part)).filter(({ purpose }) => purpose === 'merkle');
  return (
    boxes.some((box) => isExcludedType(box.type) && !isFileType(box)) ||
    merkle.length > 1 ||
    merkle.some(({ content }) => readMerkleBox(content) === undefined)
  );
}

/** Returns the C2PA boxes among the top-level boxes of a file, or of its beginning. @param {Blob} blob */
async function c2paBoxesIn(blob) {
  const isC2pa = (/** @type {TopBox} */ { bytes }) => bytesToHex(bytes.subarray(8, 24)) === C2PA_BOX;
  return (await boxesIn(blob)).filter(isC2pa).map(({ bytes }) => {
    const end = bytes.indexOf(0, 28);
    return { purpose: new TextDecoder().decode(bytes.subarray(28, end)), content: bytes.subarray(end + 1) };
  });
}

/**
 * Returns the whole top-level boxes of a file, or of its beginning.
 * @param {Blob} blob
 * @returns {Promise<TopBox[]>}
 */
async function boxesIn(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const view = new DataView(bytes.buffer);
  const boxes = [];
  for (let at = 0, size = 0; at + 8 <= bytes.length; at += size) {
    size = view.getUint32(at);
    const isLarge = size === 1 && at + 16 <= bytes.length;
    if (isLarge) size = Number(view.getBigUint64(at + 8));
    if (size === 0) size = bytes.length - at;
    if (size < 8 || at + size > bytes.length) break;
    const type = new TextDecoder('latin1').decode(bytes.subarray(at + 4, at + 8));
    boxes.push({ type, headerSizeBytes: isLarge ? 16 : 8, bytes: bytes.subarray(at, at + size) });
  }
  return boxes;
}

/** @param {TopBox} box */
function contentOf({ bytes, headerSizeBytes }) {
  return bytes.subarray(headerSizeBytes);
}
