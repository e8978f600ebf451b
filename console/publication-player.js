import { signal } from '@preact/signals';
import { addressOf } from './api.js';
import { boundIn } from './c2pa-boxes.js';
import { findManifest } from './find-manifest.js';
import { MISPLACED, verifyOrder } from './fragment-order.js';
import { fetchIfThere, fragmentOf, keyOf, partOf, rateText, readPlaylists, trackNames } from './playlists.js';
import { PresentationWatch } from './presentation.js';
import { failed, isIntact, readFragment } from './reader.js';

/**
 * @typedef {import('./playlists.js').Rendition} Rendition
 * @typedef {import('./playlists.js').Fragment} Fragment
 * @typedef {import('./reader.js').Reading} Reading
 * @typedef {{ id: number, name: string }} Choice
 * @typedef {{ choices: readonly Choice[], chosen: number }} Choices
 */

/** Readings of failures that are kept whole; later ones lack the raw report. */
const MAX_DETAILED_FAILURES = 20;

/** @type {Choices} */
const NONE = { choices: [], chosen: -1 };

const UNDECODABLE =
  'This browser cannot decode the codec of this publication, so nothing plays. It is verified all the same.';
const ENCRYPTED =
  'This publication is encrypted, and the page has no keys, so nothing plays. It is verified all the same.';

const WITHOUT = { codes: [], manifests: [] };
/** The reading of a segment without an init segment. @type {Reading} */
const UNSIGNED = { verification: { state: 'none', summary: 'No provenance information.', ...WITHOUT }, raw: null };
/** The reading of media without a manifest in place of signed ones. */
const REPLACED = failed(UNSIGNED, MISPLACED, 'Nobody signed what plays in its place.');
/** The reading of a fragment that is not there. */
const MISSING = failed(UNSIGNED, MISPLACED, 'It is not there.');

/** Plays an HLS publication, and verifies every fragment that the player loads. Playback goes on whatever the verdict. */
export class PublicationPlayer {
  /** @type {import('@preact/signals').Signal<readonly Rendition[]>} */
  renditions = signal([]);
  /** Why nothing can be played; empty while all is well. */
  problem = signal('');
  /** True where playback can be tried again. */
  canRetry = signal(false);
  /** Resolutions to choose from; -1 is the player's own choice. @type {import('@preact/signals').Signal<Choices>} */
  levels = signal(NONE);
  /** Languages to choose from. @type {import('@preact/signals').Signal<Choices>} */
  languages = signal(NONE);
  /** Fragments that are still to be verified by `verifyAll`; -1 while it does not run. */
  left = signal(-1);
  #video;
  #address;
  /** @type {any} */
  #hls;
  /** @type {Map<string, Fragment[]>} */
  #byPart = new Map();
  /** Init segments that were read in detail. @type {Set<string>} */
  #known = new Set();
  #failures = 0;
  /** True where no manifest was found before playback. */
  #lacksManifest = false;
  /** True where samples are encrypted. */
  #isEncrypted = false;
  #closed = new AbortController();
  presentation;

  /**
   * @param {HTMLVideoElement} video
   * @param {string} address of the main playlist
   */
  constructor(video, address) {
    this.#video = video;
    this.#address = address;
    this.presentation = new PresentationWatch(address, () => video.currentTime, this.#closed.signal);
    this.retry();
  }

  close() {
    this.#closed.abort();
    this.#hls?.destroy();
  }

  /** @param {number} id a resolution; -1 leaves the choice to the player */
  chooseLevel(id) {
    this.#hls.nextLevel = id;
    this.levels.value = { ...this.levels.value, chosen: id };
  }

  /** @param {number} id */
  chooseLanguage(id) {
    this.#hls.audioTrack = id;
    this.languages.value = { ...this.languages.value, chosen: id };
  }

  /** Starts, or goes on after the connection was lost. */
  retry() {
    this.problem.value = '';
    if (this.#hls !== undefined) this.#hls.startLoad();
    else this.#open().catch((error) => this.#stop(error.message, true));
  }

  /** Verifies every fragment that was not verified yet, without playing it. */
  async verifyAll() {
    const waiting = this.renditions.value.flatMap(({ fragments }) =>
      fragments.filter(({ reading }) => reading === null),
    );
    await this.#verifyEach(waiting);
  }

  async #open() {
    const { default: Hls, M3U8Parser: parser } = await import(addressOf('console/vendor/hls.js'));
    const take = this.presentation.loadPlaylist.bind(this.presentation);
    const lose = this.presentation.losePlaylist.bind(this.presentation);
    const { renditions, problem } = await readPlaylists({ parser, take, lose }, this.#address, this.#closed.signal);
    const all = renditions.flatMap(({ fragments }) => fragments);
    this.#byPart = Map.groupBy(all, ({ part }) => keyOf(part));
    this.renditions.value = renditions;
    await this.#startPresentation();
    if (this.#closed.signal.aborted) return;
    if (problem !== '') throw new Error(problem);
    if (Hls.isSupported()) this.#play(Hls);
    else await this.#onlyVerify('This browser cannot play streaming publications from a page.');
  }

  /** @param {any} Hls */
  #play(Hls) {
    this.#hls = new Hls({
      // The page's policy allows no worker that is made from text.
      enableWorker: false,
      // The programme is verified: other media do not play in between.
      enableInterstitialPlayback: false,
      // No server chooses between renditions: what it says is signed by nobody.
      contentSteeringController: undefined,
      pLoader: watchedLoader(Hls, this.presentation),
    });
    const { Events } = Hls;
    /** @param {string} event @param {(data: any) => void} listener */
    const on = (event, listener) =>
      this.#hls.on(event, (/** @type {any} */ _, /** @type {any} */ data) => listener(data));
    on(Events.MANIFEST_PARSED, ({ levels }) => {
      this.levels.value = { choices: levels.map(levelChoice), chosen: -1 };
    });
    on(Events.AUDIO_TRACKS_UPDATED, ({ audioTracks }) => {
      const names = trackNames(audioTracks);
      const choices = audioTracks.map((/** @type {any} */ { id }, /** @type {number} */ index) => ({
        id,
        name: names[index],
      }));
      this.languages.value = { choices, chosen: this.#hls.audioTrack };
    });
    on(Events.AUDIO_TRACK_SWITCHED, ({ id }) => {
      this.languages.value = { ...this.languages.value, chosen: id };
    });
    on(Events.FRAG_LOADED, ({ frag, payload }) => {
      void this.presentation.loadFile(partOf(frag), new Uint8Array(payload));
      const isText = frag.type === 'subtitle' && frag.initSegment === null;
      if (frag.sn === 'initSegment' || isText) return;
      // Copies: the player may hand its buffers on before the reader has them.
      const [init, blob] = [frag.initSegment === null ? null : new Blob([frag.initSegment.data]), new Blob([payload])];
      for (const fragment of this.#fragmentsOf(frag)) void this.#verify(fragment, init, blob);
    });
    on(Events.ERROR, (data) => this.#fail(data));
    this.#hls.loadSource(this.#address);
    this.#hls.attachMedia(this.#video);
  }

  /**
   * Returns the fragments of the timelines that a part is. One that was in no playlist when they were read stands behind those that were:
   * nothing plays that no timeline shows.
   * @param {any} frag of the player's library
   * @returns {Fragment[]}
   */
  #fragmentsOf(frag) {
    const key = keyOf(partOf(frag));
    const known = this.#byPart.get(key);
    if (known !== undefined) return known;
    const renditions = this.renditions.value;
    const own = renditions.find(({ base }) => base === frag.baseurl) ?? renditions[0];
    const added = fragmentOf(frag, own?.fragments.length ?? 0);
    own?.fragments.push(added);
    this.#byPart.set(key, [added]);
    return [added];
  }

  /**
   * Verifies a fragment with the init segment that it was loaded with.
   * @param {Fragment} fragment
   * @param {Blob | null} init null for a segment that has none: no manifest binds it
   * @param {Blob} blob
   */
  async #verify(fragment, init, blob) {
    if (init === null) return this.#show(fragment, UNSIGNED, { sizeBytes: blob.size });
    const initKey = fragment.init === null ? '' : keyOf(fragment.init);
    const isFirst = !this.#known.has(initKey);
    this.#known.add(initKey);
    let reading = await this.#read(init, blob, isFirst);
    if (reading.verification.state === 'none' && this.presentation.binds(fragment)) reading = REPLACED;
    if (this.#lacksManifest && isIntact(reading)) {
      this.#lacksManifest = false;
      const { raw } = await this.#read(init, blob, true);
      await this.presentation.start(JSON.parse((await raw?.text()) ?? '{}'), init, this.renditions.value);
    }
    const bound = isIntact(reading) ? await boundIn(init, blob) : null;
    if (bound !== null) await this.presentation.loadBound(fragment, bound);
    if (!isIntact(reading)) {
      this.#failures += 1;
      if (!isFirst && this.#failures <= MAX_DETAILED_FAILURES) reading = await this.#read(init, blob, true);
    }
    this.#show(fragment, reading, { sizeBytes: blob.size, bound });
  }

  /**
   * Shows the verdict on a fragment.
   * @param {Fragment} fragment
   * @param {Reading} reading
   * @param {Partial<Fragment>} facts
   */
  #show(fragment, reading, facts) {
    if (this.#closed.signal.aborted) return;
    Object.assign(fragment, { bound: null, ...facts, alone: reading, reading });
    // Fragments change in place, because a programme may have 20,000 of them; the rendition is a new object.
    this.renditions.value = this.renditions.value.map((rendition) => {
      if (rendition.fragments[fragment.index] !== fragment) return rendition;
      verifyOrder(rendition.fragments, fragment);
      return { ...rendition };
    });
  }

  async #startPresentation() {
    const renditions = this.renditions.value;
    const read = (/** @type {Blob} */ init, /** @type {Blob} */ blob) => this.#read(init, blob, true);
    const { first, isSigned } = await findManifest(renditions, read, this.#closed.signal);
    if (first !== null) return await this.presentation.start(first.report, first.init, renditions);
    this.#lacksManifest = true;
    if (isSigned) this.presentation.fail();
  }

  /**
   * @param {Blob} init
   * @param {Blob} blob
   * @param {boolean} detailed
   * @returns {Promise<Reading>}
   */
  async #read(init, blob, detailed) {
    try {
      return await readFragment(init, blob, detailed);
    } catch (error) {
      const summary = `It cannot be verified. ${/** @type {Error} */ (error).message}`;
      return { verification: { state: 'invalid', summary, codes: [], manifests: [] }, raw: null };
    }
  }

  /** @param {readonly Fragment[]} fragments */
  async #verifyEach(fragments) {
    const { signal: closed } = this.#closed;
    this.left.value = fragments.length;
    let initKey = '';
    /** @type {Blob | null} */
    let init = null;
    try {
      for (const fragment of fragments) {
        if (fragment.reading === null) {
          const key = fragment.init === null ? '' : keyOf(fragment.init);
          if (initKey !== key) init = fragment.init && (await fetchIfThere(fragment.init, closed));
          initKey = key;
          const blob = await fetchIfThere(fragment.part, closed);
          if (blob === null || (init === null && fragment.init !== null)) this.#show(fragment, MISSING, {});
          else await this.#verify(fragment, init, blob);
        }
        if (closed.aborted) return;
        this.left.value -= 1;
      }
    } catch (error) {
      this.#stop(`Verification stopped: ${/** @type {Error} */ (error).message}.`, false);
    } finally {
      this.left.value = -1;
    }
  }

  /**
   * Ends playback, says why, and verifies the first fragment of every rendition all the same.
   * @param {string} problem
   */
  async #onlyVerify(problem) {
    this.#hls?.destroy();
    this.#hls = undefined;
    this.levels.value = NONE;
    this.languages.value = NONE;
    this.#stop(problem, false);
    const first = this.renditions.value.flatMap(({ fragments }) => fragments.slice(0, 1));
    await this.#verifyEach(first.filter(({ reading }) => reading === null));
  }

  /**
   * Says why nothing more is played or verified.
   * @param {string} problem
   * @param {boolean} canRetry
   */
  #stop(problem, canRetry) {
    if (this.#closed.signal.aborted) return;
    this.problem.value = problem;
    this.canRetry.value = canRetry;
  }

  /** @param {any} data */
  #fail({ fatal, type, details, frag, response }) {
    const isMissing = details === 'fragLoadError' && response?.code === 404 && frag.sn !== 'initSegment';
    for (const fragment of (isMissing && this.#byPart.get(keyOf(partOf(frag)))) || [])
      this.#show(fragment, MISSING, {});
    this.#isEncrypted ||= type === 'keySystemError' || /^SAMPLE-AES/.test(frag?.decryptdata?.method ?? '');
    if (/codec/i.test(details) || (fatal && (type === 'mediaError' || this.#isEncrypted))) {
      void this.#onlyVerify(this.#isEncrypted ? ENCRYPTED : UNDECODABLE);
    } else if (fatal && type === 'networkError') {
      this.#stop('Playback stopped: a part of the publication cannot be loaded.', true);
    } else if (fatal) {
      this.#stop(`Playback stopped: ${details}.`, true);
    }
  }
}

/**
 * Returns a loader of playlists that shows what it loads: those that play are the ones that are compared.
 * @param {any} Hls
 * @param {PresentationWatch} presentation
 */
function watchedLoader({ DefaultConfig }, presentation) {
  return class extends DefaultConfig.loader {
    /** @param {any} context @param {any} config @param {any} callbacks */
    load(context, config, callbacks) {
      const { url: asked } = context;
      const onSuccess = (/** @type {any} */ response, /** @type {any[]} */ ...rest) => {
        const data = presentation.loadPlaylist(asked, response.url, response.data);
        callbacks.onSuccess({ ...response, data }, ...rest);
      };
      const onError = (/** @type {any} */ error, /** @type {any[]} */ ...rest) => {
        if (error.code === 404) presentation.losePlaylist(asked);
        callbacks.onError(error, ...rest);
      };
      super.load({ ...context, responseType: 'arraybuffer' }, config, { ...callbacks, onSuccess, onError });
    }
  };
}

/**
 * Returns what a level is chosen by: its height, with its rate where several have that height.
 * @param {any} level
 * @param {number} id
 * @param {any[]} levels
 */
function levelChoice({ height, bitrate }, id, levels) {
  const isOnly = levels.every((other, index) => other.height !== height || index === id);
  return { id, name: [...(height ? [`${height}p`] : []), ...(height && isOnly ? [] : [rateText(bitrate)])].join(', ') };
}
