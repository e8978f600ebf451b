import { signal } from '@preact/signals';
import { addressOf } from './api.js';
import { verify } from './reader.js';

/**
 * @typedef {import('./reader.js').Verdict} Verdict
 * @typedef {object} Fragment
 * @property {number} number
 * @property {number} start in seconds of the programme
 * @property {number} duration in seconds
 * @property {number} sizeBytes 0 before it is loaded
 * @property {Verdict | null} verdict null before it is verified
 *
 * @typedef {{ key: string, name: string, fragments: readonly Fragment[] }} Rendition
 * @typedef {{ rendition: string, number: number, start: number, verdict: Verdict }} Failure
 */

/** Plays an HLS publication, and verifies every fragment that the player loads. Playback goes on whatever the verdict. */
export class PublicationPlayer {
  /** @type {import('@preact/signals').Signal<readonly Rendition[]>} */
  renditions = signal([]);
  /** The verdict of the first fragment, whose manifest is that of the publication; then the first that fails. */
  verdict = signal(/** @type {Verdict | null} */ (null));
  /** @type {import('@preact/signals').Signal<Failure | null>} */
  firstFailure = signal(null);
  /** Why nothing can be played; empty while all is well. */
  problem = signal('');
  /** @type {any} */
  #hls;
  #closed = false;

  /**
   * @param {HTMLVideoElement} video
   * @param {string} address of the main playlist
   */
  constructor(video, address) {
    void this.#open(video, address);
  }

  close() {
    this.#closed = true;
    this.#hls?.destroy();
  }

  /**
   * @param {HTMLVideoElement} video
   * @param {string} address
   */
  async #open(video, address) {
    const { default: Hls } = await import(addressOf('console/vendor/hls.js'));
    if (this.#closed) return;
    if (!Hls.isSupported()) {
      this.problem.value = 'This browser cannot play streaming publications from a page.';
      return;
    }
    // The page's policy allows no worker that is made from text.
    this.#hls = new Hls({ enableWorker: false });
    const { Events } = Hls;
    this.#hls.on(Events.LEVEL_LOADED, (/** @type {any} */ _, /** @type {any} */ { details, levelInfo, level }) =>
      this.#list(`main ${level}`, videoName(levelInfo, level), details),
    );
    this.#hls.on(Events.AUDIO_TRACK_LOADED, (/** @type {any} */ _, /** @type {any} */ { details, id, track }) =>
      this.#list(`audio ${id}`, `Audio ${track?.name ?? id}`, details),
    );
    this.#hls.on(
      Events.FRAG_LOADED,
      (/** @type {any} */ _, /** @type {any} */ { frag, payload }) => void this.#check(frag, payload),
    );
    this.#hls.on(Events.ERROR, (/** @type {any} */ _, /** @type {any} */ data) => this.#fail(data));
    this.#hls.loadSource(address);
    this.#hls.attachMedia(video);
  }

  /**
   * @param {string} key
   * @param {string} name
   * @param {any} details
   */
  #list(key, name, details) {
    if (this.renditions.value.some((rendition) => rendition.key === key)) return;
    const fragments = details.fragments.map((/** @type {any} */ { sn, start, duration }) => ({
      number: sn,
      start,
      duration,
      sizeBytes: 0,
      verdict: null,
    }));
    this.renditions.value = [...this.renditions.value, { key, name, fragments }].sort((a, b) =>
      a.key < b.key ? 1 : -1,
    );
  }

  /**
   * Verifies a fragment with the init segment that it was loaded with.
   * @param {any} frag
   * @param {ArrayBuffer} payload
   */
  async #check(frag, payload) {
    const init = frag.initSegment?.data;
    if (frag.sn === 'initSegment' || init === undefined || init === null) return;
    // Copies: the player may hand its buffers on before the reader has them.
    const [initBlob, fragment] = [new Blob([init]), new Blob([payload])];
    const verdict = await verify(initBlob, 'video/mp4', fragment);
    if (this.#closed) return;
    const key = `${frag.type} ${frag.level}`;
    this.#note(key, { number: frag.sn, start: frag.start, sizeBytes: fragment.size, verdict });
  }

  /**
   * @param {string} key
   * @param {{ number: number, start: number, sizeBytes: number, verdict: Verdict }} checked
   */
  #note(key, { number, start, sizeBytes, verdict }) {
    this.renditions.value = this.renditions.value.map((rendition) =>
      rendition.key !== key
        ? rendition
        : {
            ...rendition,
            fragments: rendition.fragments.map((fragment) =>
              fragment.number === number ? { ...fragment, sizeBytes, verdict } : fragment,
            ),
          },
    );
    const isGood = verdict.state === 'valid' || verdict.state === 'trusted';
    const failed = this.firstFailure.value;
    if (!isGood && (failed === null || start < failed.start)) {
      const name = this.renditions.value.find((rendition) => rendition.key === key)?.name ?? key;
      this.firstFailure.value = { rendition: name, number, start, verdict };
    }
    if (this.verdict.value === null || (!isGood && this.verdict.value.state !== 'invalid'))
      this.verdict.value = verdict;
  }

  /** @param {any} data */
  #fail({ fatal, type, details }) {
    if (!fatal) return;
    if (type === 'mediaError' && /codec/i.test(details))
      this.problem.value = 'This browser has no decoder for the codec of this publication.';
    else this.problem.value = `Playback stopped: ${details}.`;
  }
}

/** @param {any} level @param {number} index */
function videoName(level, index) {
  if (level?.height) return `Video ${level.height}p`;
  return level?.bitrate ? `Rendition ${Math.round(level.bitrate / 1000)} kbit/s` : `Rendition ${index}`;
}
