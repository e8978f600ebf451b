/** SHA-256 (FIPS 180-4). `crypto.subtle` is there over HTTPS and on localhost only, and the console is used without both. */

/** The first 32 bits of the fractional parts of a root of a prime number: 2 for square roots, 3 for cubic ones. */
const fractionOf = (/** @type {number} */ prime, /** @type {number} */ root) => (prime ** (1 / root) % 1) * 2 ** 32;
/** @type {number[]} */
const PRIMES = [];
for (let number = 2; PRIMES.length < 64; number += 1) {
  if (PRIMES.every((prime) => number % prime !== 0)) PRIMES.push(number);
}
const START = Uint32Array.from(PRIMES.slice(0, 8), (prime) => fractionOf(prime, 2));
const ROUNDS = Uint32Array.from(PRIMES, (prime) => fractionOf(prime, 3));
const BLOCK_SIZE_BYTES = 64;

/** Stands in for `createHash('sha256')` of `node:crypto`. */
export function createHash() {
  return { update: (/** @type {Uint8Array} */ bytes) => ({ digest: () => sha256(bytes) }) };
}

/**
 * @param {Uint8Array} bytes
 * @returns {Uint8Array}
 */
export function sha256(bytes) {
  // The rest of a block, and a block where a one, zeros and the length in bits do not fit in.
  const whole = bytes.length - (bytes.length % BLOCK_SIZE_BYTES);
  const tail = new Uint8Array(bytes.length - whole < 56 ? BLOCK_SIZE_BYTES : 2 * BLOCK_SIZE_BYTES);
  tail.set(bytes.subarray(whole));
  tail[bytes.length - whole] = 0x80;
  new DataView(tail.buffer).setBigUint64(tail.length - 8, BigInt(bytes.length) * 8n);
  const state = START.slice();
  for (let at = 0; at < whole; at += BLOCK_SIZE_BYTES) addBlock(state, bytes, at);
  for (let at = 0; at < tail.length; at += BLOCK_SIZE_BYTES) addBlock(state, tail, at);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, index) => {
    digest.setUint32(4 * index, word);
  });
  return new Uint8Array(digest.buffer);
}

const words = new Int32Array(64);

/** @param {Uint32Array} state @param {Uint8Array} bytes @param {number} offset */
function addBlock(state, bytes, offset) {
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, BLOCK_SIZE_BYTES);
  for (let index = 0; index < 64; index += 1) {
    words[index] = index < 16 ? view.getInt32(4 * index) : nextWord(index);
  }
  let [a, b, c, d, e, f, g, h] = /** @type {any} */ (state);
  for (let index = 0; index < 64; index += 1) {
    const one =
      h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + at(ROUNDS, index) + at(words, index);
    const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, index) => {
    state[index] = at(state, index) + word;
  });
}

/** @param {number} index */
function nextWord(index) {
  const [early, late] = [at(words, index - 15), at(words, index - 2)];
  const first = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
  const second = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
  return at(words, index - 16) + first + at(words, index - 7) + second;
}

const at = (/** @type {Int32Array | Uint32Array} */ list, /** @type {number} */ index) => list[index] ?? 0;
const turn = (/** @type {number} */ word, /** @type {number} */ bits) => (word >>> bits) | (word << (32 - bits));
