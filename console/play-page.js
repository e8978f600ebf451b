import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { addressOf, loginNeeded } from './api.js';
import { html } from './html.js';
import { entryOf, listOutput, outputAddress } from './outputs.js';
import { Provenance, StateMark, sentenceOf } from './provenance.js';
import { PublicationPlayer } from './publication-player.js';
import { MAX_FILE_BYTES, verify } from './reader.js';
import { route } from './router.js';
import { Timeline } from './timeline.js';

/** @typedef {import('./reader.js').Verdict} Verdict */

/** Plays an output. Of a publication every fragment is verified as it is played; a single file is verified whole. */
export function PlayPage() {
  const { query } = route.value;
  const asked = query.toString();
  const address = useSignal('');
  const problem = useSignal('');
  useEffect(() => {
    address.value = '';
    problem.value = '';
    addressToPlay(query).then(
      (found) => {
        address.value = found;
      },
      (error) => {
        problem.value = error.message;
      },
    );
  }, [asked, loginNeeded.value]);
  if (problem.value !== '') return html`<h1>Play</h1><p class="notice" role="alert">${problem.value}</p>`;
  if (address.value === '') return html`<h1 aria-busy="true">Play</h1>`;
  const name = decodeURIComponent(new URL(address.value).pathname.split('/').at(-1) ?? '');
  return /\.m3u8$/i.test(name)
    ? html`<${PublicationView} key=${address.value} name=${name} address=${address.value} />`
    : html`<${FileView} key=${address.value} name=${name} address=${address.value} />`;
}

/**
 * Returns what the address of the page names: a file below this page (`src`), a file of an output, or its entry.
 * @param {URLSearchParams} query
 */
async function addressToPlay(query) {
  const [job, index, source] = [query.get('job') ?? '', query.get('index') ?? '0', query.get('src')];
  if (source !== null) {
    const address = addressOf(source);
    if (!address.startsWith(addressOf(''))) throw new Error('Only what this service serves can be played here.');
    return address;
  }
  const entry = query.get('path') ?? entryOf(await listOutput(job, index))?.path;
  if (entry === undefined) throw new Error('The output has no playlist that a browser can play.');
  return outputAddress(job, index, entry);
}

/** @param {{ name: string, address: string }} props */
function FileView({ name, address }) {
  const verdict = useSignal(/** @type {Verdict | null} */ (null));
  const problem = useSignal('');
  useEffect(() => {
    verifyAddress(address).then(
      (found) => {
        verdict.value = found;
      },
      (error) => {
        problem.value = error.message;
      },
    );
  }, [address]);
  return html`
    <h1 class="path">${name}</h1>
    <video controls src=${address} aria-label=${name}></video>
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    ${verdict.value ? html`<${Provenance} verdict=${verdict.value} />` : problem.value === '' && html`<p aria-busy="true">Verifying the whole file …</p>`}
  `;
}

/** @param {string} address */
async function verifyAddress(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`The service answered with status ${response.status}.`);
  if (Number(response.headers.get('content-length')) > MAX_FILE_BYTES) {
    await response.body?.cancel();
    throw new Error('The file is too large to be verified in a browser. It plays unverified.');
  }
  const blob = await response.blob();
  return verify(blob, blob.type);
}

/** @param {{ name: string, address: string }} props */
function PublicationView({ name, address }) {
  const video = useRef(/** @type {HTMLVideoElement | null} */ (null));
  const player = useSignal(/** @type {PublicationPlayer | null} */ (null));
  const time = useSignal(0);
  useEffect(() => {
    if (video.current === null) return;
    const started = new PublicationPlayer(video.current, address);
    player.value = started;
    return () => started.close();
  }, [address]);
  const state = player.value;
  const failed = state?.firstFailure.value;
  return html`
    <h1 class="path">${name}</h1>
    <video
      ref=${video}
      controls
      aria-label=${name}
      onTimeUpdate=${(/** @type {any} */ { target }) => {
        time.value = target.currentTime;
      }}
    ></video>
    ${failed && html`<p class="notice" role="alert">From ${clock(failed.start)} on, this is not what was signed: fragment ${failed.number} of ${failed.rendition}. ${sentenceOf(failed.verdict)}</p>`}
    ${state?.problem.value && html`<p class="notice" role="alert">${state.problem.value}</p>`}
    ${state && html`<${OnScreen} player=${state} time=${time.value} />`}
    ${state?.renditions.value.map((rendition) => html`<${Timeline} key=${rendition.name} rendition=${rendition} time=${time.value} />`)}
    ${state?.verdict.value && html`<${Provenance} verdict=${state.verdict.value} />`}
  `;
}

/**
 * Tells what is known of the fragments that are on screen at this moment.
 * @param {{ player: PublicationPlayer, time: number }} props
 */
function OnScreen({ player, time }) {
  const current = player.renditions.value.flatMap(({ fragments }) =>
    fragments.filter(({ start, duration, verdict }) => verdict !== null && start <= time && time < start + duration),
  );
  if (current.length === 0) return html`<p class="muted">Nothing of what is on screen is verified yet.</p>`;
  const worst =
    current.find(({ verdict }) => verdict?.state === 'invalid') ??
    current.find(({ verdict }) => verdict?.state === 'none') ??
    current[0];
  return html`<p>On screen now: <${StateMark} state=${worst?.verdict?.state ?? 'none'} /></p>`;
}

/** @param {number} seconds */
export function clock(seconds) {
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}
