import { sha256 } from '@noble/hashes/sha2.js';
import { signal } from '@preact/signals';
import { boundIn, storeIn } from './c2pa-boxes.js';
import { isSame, NamedFiles } from './named-files.js';
import { addressesIn, fetchIfThere, headOf } from './playlists.js';
import { isIntact } from './reader.js';
import { comparePresentation } from './shared/compare-presentation.js';
import { isPresented } from './shared/presentation.js';
import { summarize, summarizeDeviations } from './shared/summarize.js';
import {
  CANNOT_SAY,
  countsIn,
  LOADED,
  PART,
  pathBelow,
  presentationIn,
  rootOf,
  textsOf,
} from './signed-presentation.js';

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
 * @typedef {{ base: string, bytes: Uint8Array, digest: Uint8Array }} LoadedPlaylist with the address that answered
 * @typedef {{ path: string, uniqueId: number, localId: number, count: number }} BoundInit
 * @typedef {{ uniqueId: number, localId: number, location: number, count: number }} BoundFragment
 * @typedef {{ part: Deviation['part'], kind: Deviation['kind'], playlist: string | null }} Difference
 *
 * @typedef {object} Compared
 * @property {'as_signed' | 'changed' | 'not_signed' | 'not_compared'} state
 * @property {readonly (Difference & { readonly url: string | null, readonly seconds: number })[]} differences with the playlist's address, and when it was noticed
 * @property {string} entry
 */

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
  /** The address of the main playlist: the one that was asked for, and the one that answered first. */
  #asked;
  #entry;
  #time;
  #closed;
  /** The first two contents of each playlist, by its address. @type {Map<string, LoadedPlaylist[]>} */
  #playlists = new Map();
  /** Addresses of playlists that are not there. @type {Set<string>} */
  #lost = new Set();
  #files;
  /** Init segments with a manifest, by address. @type {Map<string, Omit<Bound, 'location'>>} */
  #inits = new Map();
  /** Init segments without a manifest. @type {Set<string>} */
  #unsigned = new Set();
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
    this.#asked = entry;
    this.#entry = entry;
    this.#time = time;
    this.#closed = closed;
    this.#files = new NamedFiles(closed);
  }

  /**
   * Takes note of a playlist that was loaded, and compares it where it was not loaded with these bytes before. Returns its text. A
   * playlist is the one that was asked for, wherever its answer came from: a redirect to another signed one would have that play in its
   * place. Only the main playlist may lie elsewhere, with all that it names.
   * @param {string} asked
   * @param {string} base the address that answered
   * @param {ArrayBuffer} buffer
   */
  loadPlaylist(asked, base, buffer) {
    const bytes = new Uint8Array(buffer);
    const digest = sha256(bytes);
    if (this.#playlists.size === 0) this.#entry = base;
    const url = asked === this.#asked ? this.#entry : asked;
    const known = this.#playlists.get(url) ?? [];
    if (known.length < 2 && !known.some((loaded) => loaded.base === base && isSame(loaded.digest, digest))) {
      this.#playlists.set(url, [...known, { base, bytes, digest }]);
      void this.#compare();
    }
    return new TextDecoder().decode(bytes);
  }

  /**
   * Takes note of a playlist that is not there.
   * @param {string} url
   */
  losePlaylist(url) {
    this.#lost.add(url);
    void this.#compare();
  }

  /**
   * Takes note of a file that was loaded, or of a range of it, where a playlist names it beside signed fragments.
   * @param {Part} part
   * @param {Uint8Array} bytes
   */
  async loadFile(part, bytes) {
    if (await this.#files.isOther(part, bytes)) await this.#compare();
  }

  /**
   * Takes note of what binds a fragment that was found intact, and its init segment. The positions of fragments are compared
   * when all of a rendition are known.
   * @param {Fragment} fragment
   * @param {Bound} bound
   */
  async loadBound({ init, part }, { location, ...own }) {
    const isOther = init !== null && this.#takeInit(init.url, own);
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
   * Returns true for a fragment that a manifest was found to bind, whatever lies at its address later.
   * @param {Fragment} fragment
   */
  binds({ part }) {
    return this.#fragments.has(part.url);
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
    if (stated === null) {
      return this.#tell('not_signed', [], `Nobody signed the playlists, so this page ${CANNOT_SAY}`);
    }
    if ('count' in stated && stated.count !== this.#playlists.size) {
      const problem = `The manifest signs ${stated.count} playlists by one digest, and a player loads ${this.#playlists.size} of them, so this page ${CANNOT_SAY}`;
      return this.#tell('not_compared', [], problem);
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
   * @param {boolean} isPart true where other fragments are not intact
   * @returns {Reading}
   */
  judge(reading, isPart) {
    const { verification } = reading;
    if (!isIntact(reading)) return reading;
    const publication = this.#publication;
    if (publication?.presentation === 'changed') {
      return { ...reading, verification: { ...verification, state: 'invalid', summary: this.summary } };
    }
    const summary =
      publication === null || isPart
        ? summarize(verification, isPart ? PART : LOADED)
        : summarize({ ...verification, publication });
    return { ...reading, verification: { ...verification, summary } };
  }

  /** How the playlists differ from the signed ones, in the words of the API. */
  get summary() {
    return this.#publication === null ? '' : summarizeDeviations(this.#publication);
  }

  get #publication() {
    if (this.compared.value === null) return null;
    const { state, differences, entry } = this.compared.value;
    if (state === 'not_signed' || state === 'not_compared') return null;
    const unsigned = state === 'changed' ? [] : [...this.#unsigned];
    const first = [
      ...differences.map(({ kind, part, playlist }) => ({ kind, part, count: 1, ...(playlist && { file: playlist }) })),
      ...unsigned.map((url) => ({ kind: 'unsigned', part: 'init', count: 1, file: this.#pathOf(url) })),
    ];
    const deviations = unsigned.length === 0 ? {} : { unsigned: unsigned.length };
    return { presentation: state, entries: [entry], deviations, first };
  }

  /**
   * Returns true for media that are not what was signed. Media without a manifest are where something else is signed, unless the digests
   * over the playlists cover them.
   * @param {Reading} reading
   */
  isFailure({ verification: { state } }) {
    const presentation = this.compared.value?.state ?? 'as_signed';
    return state === 'invalid' || (state === 'none' && presentation !== 'as_signed');
  }

  /** @param {Rendition['fragments']} fragments */
  async #readInits(fragments) {
    const withInits = fragments.flatMap(({ init, part }) => (init === null ? [] : [{ init, part }]));
    for (const [url, own] of Map.groupBy(withInits, ({ init }) => init.url)) {
      const init = own[0] && (await fetchIfThere(own[0].init, this.#closed));
      if (init && (await storeIn(init)) === null) this.#unsigned.add(url);
      for (const { part } of own.slice(0, MAX_TRIED_FRAGMENTS)) {
        const head = await fetchIfThere(headOf(part), this.#closed);
        const bound = init && head && (await boundIn(init, head));
        if (!bound) continue;
        const { location: _, ...map } = bound;
        this.#takeInit(url, map);
        for (const each of own) this.#fragments.set(each.part.url, null);
        break;
      }
    }
  }

  async #compare() {
    const signed = this.#signed;
    if (signed === null) return;
    this.#round += 1;
    const round = this.#round;
    try {
      const loaded = Array.from(this.#playlists, ([url, contents]) =>
        contents.map((each) => ({ url, ...each })),
      ).flat();
      const playlists = loaded.map((each) => this.#describe(each));
      const others = await this.#unloaded(playlists);
      const texts = textsOf(signed, playlists.length);
      const ofTexts = texts === null ? [] : this.#differencesIn(comparePresentation(texts, playlists, others));
      // The files that playlists name may never come: nothing waits for them where a text was changed.
      if (ofTexts.length > 0 && round === this.#round) this.#tell('changed', ofTexts);
      const whole = await Promise.all(
        loaded.map(async (each) => ({ ...this.#describe(each), ...(await this.#partsOf(each)) })),
      );
      const found = this.#differencesIn(comparePresentation(signed, whole, others));
      if (round === this.#round) this.#tell(found.length === 0 ? 'as_signed' : 'changed', found);
    } catch (error) {
      if (!this.#closed.aborted) this.#tell('changed', [UNREADABLE], /** @type {Error} */ (error).message);
    }
  }

  /**
   * Returns the differences that a comparison found, each once.
   * @param {{ differences: readonly any[] }} comparison
   * @returns {Difference[]}
   */
  #differencesIn({ differences }) {
    const foreign = { part: 'playlist', kind: 'added', playlist: this.#pathOf(this.#entry) };
    const all = this.#isForeign ? [foreign, ...differences] : differences;
    return [...new Map(all.map((each) => [`${each.part} ${each.kind} ${each.playlist}`, each])).values()];
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
        return (await fetchIfThere({ url, start: 0, end: 1 }, this.#closed)) === null ? [] : [uri];
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

  /** @param {LoadedPlaylist & { url: string }} loaded */
  #describe({ url, base, bytes, digest }) {
    const text = new TextDecoder().decode(bytes);
    const lost = addressesIn(text, base).filter((each) => this.#lost.has(each));
    return {
      path: this.#pathOf(url),
      sizeBytes: bytes.length,
      digest,
      named: /** @type {(HashedFile | BoundInit)[]} */ ([]),
      isEntry: url === this.#entry,
      isHlsMedia: /^#EXT-X-TARGETDURATION:/m.test(text),
      names: lost.map((each) => this.#pathOf(each)),
    };
  }

  /**
   * Returns the files that a playlist names, and its signed fragments where all were verified.
   * @param {LoadedPlaylist} loaded
   */
  async #partsOf({ base, bytes }) {
    const addresses = addressesIn(new TextDecoder().decode(bytes), base);
    const named = await Promise.all(addresses.map((each) => this.#fileAt(each)));
    const fragments = addresses.map((each) => this.#fragments.get(each)).filter((each) => each !== undefined);
    return {
      named: named.filter((file) => file !== null),
      ...(fragments.every((each) => each !== null) && { fragments }),
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
    const file = await this.#files.get(url);
    return file && { path, sizeBytes: file.sizeBytes, digest: file.digest };
  }

  /**
   * Returns a Merkle map with the number of fragments that it binds.
   * @param {Omit<Bound, 'location'>} own
   */
  #mapOf({ uniqueId, localId }) {
    return { uniqueId, localId, count: this.#counts.get(`${uniqueId}/${localId}`) ?? 0 };
  }

  /**
   * Returns a path below the root; the address itself for one elsewhere.
   * @param {string} url
   */
  #pathOf(url) {
    return pathBelow(this.#root || new URL('.', this.#entry).href, url);
  }
}

/** @type {Difference} */
const UNREADABLE = { part: 'playlist', kind: 'unreadable', playlist: null };
