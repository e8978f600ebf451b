import { sha256 } from '@noble/hashes/sha2.js';

/**
 * @typedef {import('./playlists.js').Part} Part
 * @typedef {{ sizeBytes: number, digest: Uint8Array, content: Blob | null }} LoadedFile
 */

/** Stands for a file that was loaded with two contents. @type {LoadedFile} */
const OF_TWO_CONTENTS = { sizeBytes: 0, digest: new Uint8Array(), content: null };

/** Files that playlists name beside signed fragments. */
export class NamedFiles {
  /** By address: null where there is none. @type {Map<string, Promise<LoadedFile | null>>} */
  #files = new Map();
  #closed;

  /** @param {AbortSignal} closed */
  constructor(closed) {
    this.#closed = closed;
  }

  /**
   * Returns a file, which is loaded once, and again where that failed.
   * @param {string} url
   */
  get(url) {
    const known = this.#files.get(url)?.catch(() => this.#load(url)) ?? this.#load(url);
    this.#files.set(url, known);
    return known;
  }

  /**
   * Returns true where the player loaded a file, or a range of it, otherwise than it was known before. Of two contents, one was not signed.
   * @param {Part} part
   * @param {Uint8Array} bytes
   */
  async isOther({ url, start, end }, bytes) {
    if (!this.#files.has(url)) return false;
    const known = await this.#files.get(url)?.catch(() => undefined);
    const first = known === undefined ? await this.get(url).catch(() => null) : known;
    const loaded = await first?.content?.slice(start ?? 0, end ?? undefined).arrayBuffer();
    const isAsBefore = loaded !== undefined && isSame(sha256(new Uint8Array(loaded)), sha256(bytes));
    if (!isAsBefore) this.#files.set(url, Promise.resolve(OF_TWO_CONTENTS));
    return !isAsBefore || known === undefined;
  }

  /** @param {string} url @returns {Promise<LoadedFile | null>} */
  async #load(url) {
    const response = await fetch(url, { signal: this.#closed });
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`A file that a playlist names cannot be loaded: status ${response.status}.`);
    const content = await response.blob();
    return { sizeBytes: content.size, digest: sha256(new Uint8Array(await content.arrayBuffer())), content };
  }
}

/** @param {Uint8Array | undefined} first @param {Uint8Array} second */
export function isSame(first, second) {
  return String(first) === String(second);
}
