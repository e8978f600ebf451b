import { sha256 } from '@noble/hashes/sha2.js';
import { signal } from '@preact/signals';
import { boundIn, storeIn } from './c2pa-boxes.js';
import { addressesIn, fetchIfThere } from './playlists.js';
import { isIntact } from './reader.js';
import { comparePresentation } from './shared/compare-presentation.js';
import { isPresented } from './shared/presentation.js';
import { summarize, summarizeDeviations } from './shared/summarize.js';
import { countsIn, pathBelow, presentationIn, rootOf } from './signed-presentation.js';

/**
 * @typedef {import('./c2pa-boxes.js').Bound} Bound
 * @typedef {import('./playlists.js').Fragment} Fragment
 * @typedef {import('./playlists.js').Part} Part
 * @typedef {import('./playlists.js').Rendition} Rendition
 * @typedef {import('./reader.js').Reading} Reading
 * @typedef {import('./signed-presentation.js').Presentation} Presentation
 * @typedef {import('../src/contract/verification.ts').PublicationDeviation} Deviation
 *
 * @typedef {{ path: string, sizeBytes: number, digest: Uint8Array }} HashedFile
 * @typedef {Omit<HashedFile, 'path'> & { content: Blob | null }} LoadedFile
 * @typedef {{ path: string, uniqueId: number, localId: number, count: number }} BoundInit
 * @typedef {{ uniqueId: number, localId: number, location: number, count: number }} BoundFragment
 * @typedef {{ part: Deviation['part'], kind: Deviation['kind'], playlist: string | null }} Difference
 *
 * @typedef {object} Compared
 * @property {'as_signed' | 'changed' | 'not_signed'} state
 * @property {readonly (Difference & { readonly url: string | null, readonly seconds: number })[]} differences with the playlist's address, and when it was noticed
 * @property {string} entry
 */

/** Bytes of a fragment that its Merkle box lies in. */
const HEAD_SIZE_BYTES = 64 * 1024;
/** Fragments that are looked at for what binds their init segment: others may stand where the first ones were, or nothing. */
export const MAX_TRIED_FRAGMENTS = 3;

/**
 * Compares the playlists that a player loads, and the text and other files that they name, with the presentation that the manifest
 * signs; again whenever one of them is loaded with other bytes. All that was loaded counts, because players go on with it: of two
 * contents of a playlist or file, one was not signed.
 */
export class PresentationWatch {
  /** Null before the first comparison, and where none is possible. @type {import('@preact/signals').Signal<Compared | null>} */
  compared = signal(null);
  /** Why nothing can be compared; empty where it can. */
  problem = signal('');
  #entry;
  #time;
  #closed;
  /** The first two contents of each playlist, by its address. @type {Map<string, { bytes: Uint8Array, digest: Uint8Array }[]>} */
  #playlists = new Map();
  /** Files that playlists name, by address: null where there is none. @type {Map<string, Promise<LoadedFile | null>>} */
  #files = new Map();
  /** Init segments with a manifest, by address. @type {Map<string, Omit<Bound, 'location'>>} */
  #inits = new Map();
  /** Positions of signed fragments by address: null before they are verified. @type {Map<string, BoundFragment | null>} */
  #fragments = new Map();
  /** Fragments of a rendition that are not verified yet. @type {Set<string>[]} */
  #unverified = [];
  /** Fragments that each Merkle map of the manifest binds. @type {ReadonlyMap<string, number>} */
  #counts = new Map();
  /** @type {Presentation | null} */
  #signed = null;
  /** The paths of signed playlists that are there. @type {Promise<string[][]> | undefined} */
  #there;
  #store = '';
  /** True where an init segment had another manifest. */
  #isForeign = false;
  #root = '';
  /** Comparisons that were begun: the last one counts. */
  #round = 0;

  /**
   * @param {string} entry address of the main playlist
   * @param {() => number} time of playback, in seconds
   * @param {AbortSignal} closed
   */
  constructor(entry, time, closed) {
    this.#entry = entry;
    this.#time = time;
    this.#closed = closed;
  }

  /**
   * Takes note of a playlist that was loaded, and compares it where it was not loaded with these bytes before. Returns its text.
   * @param {string} url
   * @param {ArrayBuffer} buffer
   */
  loadPlaylist(url, buffer) {
    const bytes = new Uint8Array(buffer);
    const digest = sha256(bytes);
    const known = this.#playlists.get(url) ?? [];
    if (known.length < 2 && !known.some((loaded) => isSame(loaded.digest, digest))) {
      this.#playlists.set(url, [...known, { bytes, digest }]);
      void this.#compare();
    }
    return new TextDecoder().decode(bytes);
  }

  /**
   * Takes note of a file that was loaded, or of a range of it, where a playlist names it beside signed fragments.
   * @param {Part} part
   * @param {Uint8Array} bytes
   */
  async loadFile({ url, start, end }, bytes) {
    if (!this.#files.has(url)) return;
    const known = await this.#files.get(url)?.catch(() => undefined);
    const first = known === undefined ? await this.#file(url).catch(() => null) : known;
    const loaded = await first?.content?.slice(start ?? 0, end ?? undefined).arrayBuffer();
    const isAsBefore = loaded !== undefined && isSame(sha256(new Uint8Array(loaded)), sha256(bytes));
    if (isAsBefore && known !== undefined) return;
    if (!isAsBefore) this.#files.set(url, Promise.resolve(OF_TWO_CONTENTS));
    await this.#compare();
  }

  /**
   * Takes note of what binds a fragment that was found intact, and its init segment. The positions of fragments are compared
   * when all of a rendition are known.
   * @param {Fragment} fragment
   * @param {Bound} bound
   */
  async loadBound({ init, part }, { location, ...own }) {
    const isOther = this.#takeInit(init.url, own);
    this.#fragments.set(part.url, { ...this.#mapOf(own), location });
    const completed = this.#unverified.filter((urls) => urls.delete(part.url) && urls.size === 0);
    if (isOther || completed.length > 0) await this.#compare();
  }

  /**
   * Returns true where something else binds an init segment than before.
   * @param {string} url
   * @param {Omit<Bound, 'location'>} own
   */
  #takeInit(url, own) {
    const isOther = JSON.stringify(own) !== JSON.stringify(this.#inits.get(url));
    this.#inits.set(url, own);
    this.#isForeign ||= own.store !== this.#store;
    return isOther;
  }

  /**
   * Compares what was loaded with the presentation of a manifest.
   * @param {any} report of the official reader, on a fragment under a manifest that verifies
   * @param {Blob} init of that fragment
   * @param {readonly Rendition[]} renditions
   */
  async start(report, init, renditions) {
    this.#store = (await storeIn(init)) ?? '';
    // Fragments may have been verified before.
    this.#isForeign = [...this.#inits.values()].some(({ store }) => store !== this.#store);
    this.#counts = countsIn(report);
    for (const { fragments } of renditions) await this.#readInits(fragments);
    this.#unverified = renditions.map(({ fragments }) => new Set(fragments.map(({ part }) => part.url)));
    const stated = presentationIn(report);
    if (stated !== null && 'problem' in stated) return this.#tell('changed', [UNREADABLE], stated.problem);
    if (stated === null) return this.#tell('not_signed', []);
    if ('count' in stated && stated.count !== this.#playlists.size) {
      this.problem.value = `The manifest signs ${stated.count} playlists by one digest, and a player loads ${this.#playlists.size} of them, so this page cannot compare them. Inspect has the service compare all.`;
      return;
    }
    this.#signed = stated;
    this.#root = rootOf(this.#entry, stated);
    await this.#compare();
  }

  /** Says that no manifest verifies that could sign a presentation. */
  fail() {
    this.#tell('changed', [UNREADABLE]);
  }

  /**
   * Returns the time from which on a playlist is known not to be the signed one; null for one that is.
   * @param {string | null} url
   */
  changedAt(url) {
    return this.compared.value?.differences.find((difference) => difference.url === url)?.seconds ?? null;
  }

  /**
   * Returns the verdict on an intact fragment with what is known of the playlists, in the words of the API.
   * @param {Reading} reading
   * @returns {Reading}
   */
  judge(reading) {
    const { verification } = reading;
    const publication = this.#publication;
    if (publication === null || !isIntact(reading)) return reading;
    const changed = /** @type {const} */ ({ state: 'invalid', summary: this.summary });
    const unchanged = { summary: summarize({ ...verification, publication }) ?? '' };
    const verdict = publication.presentation === 'changed' ? changed : unchanged;
    return { ...reading, verification: { ...verification, ...verdict } };
  }

  /** How the playlists differ from the signed ones, in the words of the API. */
  get summary() {
    return this.#publication === null ? '' : summarizeDeviations(this.#publication);
  }

  get #publication() {
    if (this.compared.value === null) return null;
    const { state: presentation, differences, entry } = this.compared.value;
    const first = differences.map(({ kind, part, playlist }) => ({
      kind,
      part,
      count: 1,
      ...(playlist && { file: playlist }),
    }));
    return { presentation, entries: [entry], deviations: {}, first };
  }

  /** @param {Rendition['fragments']} fragments */
  async #readInits(fragments) {
    for (const [url, own] of Map.groupBy(fragments, ({ init }) => init.url)) {
      const init = await this.#fetch({ url, start: own[0]?.init.start ?? null, end: own[0]?.init.end ?? null });
      for (const { part } of own.slice(0, MAX_TRIED_FRAGMENTS)) {
        const head = await this.#fetch({ ...part, start: part.start ?? 0, end: headEnd(part) });
        const bound = init && head && (await boundIn(init, head));
        if (bound === null) continue;
        const { location: _, ...map } = bound;
        this.#takeInit(url, map);
        for (const each of own) this.#fragments.set(each.part.url, null);
        break;
      }
    }
  }

  async #compare() {
    if (this.#signed === null) return;
    this.#round += 1;
    const round = this.#round;
    try {
      const loaded = Array.from(this.#playlists, ([url, contents]) =>
        contents.map((each) => this.#describe(url, each)),
      );
      const playlists = await Promise.all(loaded.flat());
      const { differences } = comparePresentation(this.#signed, playlists, await this.#unloaded(playlists));
      const foreign = { part: 'playlist', kind: 'added', playlist: this.#pathOf(this.#entry) };
      const all = /** @type {Difference[]} */ (this.#isForeign ? [foreign, ...differences] : differences);
      const found = [...new Map(all.map((each) => [`${each.part} ${each.kind} ${each.playlist}`, each])).values()];
      if (round === this.#round) this.#tell(found.length === 0 ? 'as_signed' : 'changed', found);
    } catch (error) {
      if (!this.#closed.aborted) this.#tell('changed', [UNREADABLE], /** @type {Error} */ (error).message);
    }
  }

  /**
   * Returns the paths of signed playlists that are there, where the player was given a playlist of media: one that named it may be gone.
   * @param {readonly { isEntry: boolean, isHlsMedia: boolean }[]} playlists
   */
  async #unloaded(playlists) {
    const standsAlone = playlists.some(({ isEntry, isHlsMedia }) => isEntry && isHlsMedia);
    if (!standsAlone || this.#signed === null || 'count' in this.#signed) return [];
    this.#there ??= Promise.all(
      this.#signed.uris.map(async ({ uri }) => {
        const root = this.#root || new URL('.', this.#entry).href;
        const { href: url } = new URL(uri.split('/').map(encodeURIComponent).join('/'), root);
        return (await this.#fetch({ url, start: 0, end: 1 })) === null ? [] : [uri];
      }),
    );
    return (await this.#there).flat();
  }

  /**
   * @param {Compared['state']} state
   * @param {Difference[]} differences
   */
  #tell(state, differences, problem = '') {
    const addresses = new Map(Array.from(this.#playlists.keys(), (url) => [this.#pathOf(url), url]));
    const dated = differences.map((difference) => {
      const url = addresses.get(difference.playlist ?? '') ?? null;
      return { ...difference, url, seconds: this.changedAt(url) ?? this.#time() };
    });
    this.problem.value = problem;
    this.compared.value = { state, differences: dated, entry: this.#pathOf(this.#entry) };
  }

  /** @param {string} url @param {{ bytes: Uint8Array, digest: Uint8Array }} loaded */
  async #describe(url, { bytes, digest }) {
    const text = new TextDecoder().decode(bytes);
    const addresses = addressesIn(text, url);
    const named = await Promise.all(addresses.map((each) => this.#fileAt(each)));
    const fragments = addresses.map((each) => this.#fragments.get(each)).filter((each) => each !== undefined);
    const playlist = { path: this.#pathOf(url), sizeBytes: bytes.length, digest };
    return {
      ...playlist,
      named: named.filter((file) => file !== null),
      ...(fragments.every((each) => each !== null) && { fragments }),
      isEntry: url === this.#entry,
      isHlsMedia: /^#EXT-X-TARGETDURATION:/m.test(text),
      // Players notice themselves that a named file is not there.
      names: [],
    };
  }

  /**
   * Returns what a playlist names at an address; null for signed fragments, playlists, and what is not there.
   * @param {string} url
   * @returns {Promise<HashedFile | BoundInit | null>}
   */
  async #fileAt(url) {
    const path = this.#pathOf(url);
    const init = this.#inits.get(url);
    if (isPresented(path) || path === url) return null;
    if (init?.store === this.#store) return { path, ...this.#mapOf(init) };
    if (this.#fragments.has(url)) return null;
    const file = await this.#file(url);
    return file && { path, sizeBytes: file.sizeBytes, digest: file.digest };
  }

  /**
   * Returns a file, which is loaded once, and again where that failed.
   * @param {string} url
   */
  #file(url) {
    const known = this.#files.get(url)?.catch(() => this.#load(url)) ?? this.#load(url);
    this.#files.set(url, known);
    return known;
  }

  /**
   * Returns a Merkle map with the number of fragments that it binds.
   * @param {Omit<Bound, 'location'>} own
   */
  #mapOf({ uniqueId, localId }) {
    return { uniqueId, localId, count: this.#counts.get(`${uniqueId}/${localId}`) ?? 0 };
  }

  /** @param {string} url @returns {Promise<LoadedFile | null>} */
  async #load(url) {
    const response = await fetch(url, { signal: this.#closed });
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`A file that a playlist names cannot be loaded: status ${response.status}.`);
    const content = await response.blob();
    return { sizeBytes: content.size, digest: sha256(new Uint8Array(await content.arrayBuffer())), content };
  }

  /** @param {Part} part */
  #fetch(part) {
    return fetchIfThere(part, this.#closed);
  }

  /**
   * Returns a path below the root; the address itself for one elsewhere.
   * @param {string} url
   */
  #pathOf(url) {
    return pathBelow(this.#root || new URL('.', this.#entry).href, url);
  }
}

/** Stands for a file that was loaded with two contents. @type {LoadedFile} */
const OF_TWO_CONTENTS = { sizeBytes: 0, digest: new Uint8Array(), content: null };

/** @type {Difference} */
const UNREADABLE = { part: 'playlist', kind: 'unreadable', playlist: null };

/** @param {Part} part */
function headEnd({ start, end }) {
  const head = (start ?? 0) + HEAD_SIZE_BYTES;
  return end === null ? head : Math.min(end, head);
}

/** @param {Uint8Array | undefined} first @param {Uint8Array} second */
function isSame(first, second) {
  return String(first) === String(second);
}
