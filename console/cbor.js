/** The part of CBOR (RFC 8949) that presentations and Merkle boxes are written in: integers from zero on, bytes, text, lists, maps and null. */

/**
 * Encodes a value deterministically (§4.2.1).
 * @param {unknown} value
 */
export function encode(value) {
  return Uint8Array.from(bytesOf(value));
}

/** @param {any} value @returns {number[]} */
function bytesOf(value) {
  if (value === null) return [0xf6];
  if (typeof value === 'number') return headOf(0, value);
  if (value instanceof Uint8Array) return [...headOf(2, value.length), ...value];
  if (Array.isArray(value)) return [...headOf(4, value.length), ...value.flatMap(bytesOf)];
  const text = new TextEncoder().encode(value);
  return [...headOf(3, text.length), ...text];
}

/** @param {number} type @param {number} size */
function headOf(type, size) {
  if (size < 24) return [(type << 5) | size];
  const form = [2 ** 8, 2 ** 16, 2 ** 32, Number.POSITIVE_INFINITY].findIndex((end) => size < end);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(size));
  return [(type << 5) | (24 + form), ...bytes.subarray(8 - 2 ** form)];
}

/**
 * Decodes the first value in bytes. Throws an Error where it is none of these, or a map has a key twice.
 * @param {Uint8Array} bytes
 * @returns {unknown}
 */
export function decode(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const take = (/** @type {number} */ count) => {
    if (count > bytes.length - at) throw new Error('The CBOR ends too early.');
    at += count;
    return at - count;
  };
  const read = () => {
    const initial = view.getUint8(take(1));
    const [type, form] = [initial >> 5, initial & 31];
    if (initial === 0xf6) return null;
    if (type > 5 || type === 1 || form > 27) throw new Error(`CBOR of the form ${initial} is not known here.`);
    const size = form < 24 ? form : sizeAt(2 ** (form - 24));
    if (type === 0) return size;
    if (type === 2 || type === 3) {
      const content = bytes.subarray(take(size), at);
      return type === 2 ? content : new TextDecoder('utf-8', { fatal: true }).decode(content);
    }
    /** @type {unknown[]} */
    const items = [];
    while (items.length < size) items.push(type === 4 ? read() : [read(), read()]);
    if (type === 4) return items;
    const map = new Map(/** @type {[unknown, unknown][]} */ (items));
    if (map.size < size) throw new Error('A map has a key twice.');
    return Object.fromEntries(map);
  };
  const sizeAt = (/** @type {number} */ count) => {
    const start = take(count);
    return Array.from(bytes.subarray(start, start + count)).reduce((sum, byte) => sum * 256 + byte, 0);
  };
  return read();
}
