import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { addressOf, loginNeeded } from './api.js';
import { html } from './html.js';
import { entryOf, listOutput, outputAddress } from './outputs.js';
import { Provenance } from './provenance.js';
import { PublicationPlayer } from './publication-player.js';
import { linkTo, route } from './router.js';
import { StateMark } from './state-mark.js';
import { clockText } from './text.js';
import { fragmentsAt, Timeline } from './timeline.js';
import { locateOutput, readAddress, verifyOutput } from './verify-by-service.js';

/**
 * @typedef {import('./reader.js').Reading} Reading
 * @typedef {import('./playlists.js').Rendition} Rendition
 * @typedef {{ address: string, name: string, job: string | null, index: string, path: string | null }} Source
 */

const AUDIO_NAME = /\.(?:m4a|mp3|wav|flac|aac|ogg)$/i;

/** Plays an output. Of a publication every fragment is verified as it is played; a single file is verified whole. */
export function PlayPage() {
  const { query } = route.value;
  const asked = query.toString();
  const source = useSignal(/** @type {Source | null} */ (null));
  const problem = useSignal('');
  useEffect(() => {
    source.value = null;
    problem.value = '';
    sourceOf(query).then(
      (found) => {
        source.value = found;
      },
      (error) => {
        problem.value = error.message;
      },
    );
  }, [asked, loginNeeded.value]);
  if (problem.value !== '') return html`<h1>Play</h1><p class="notice" role="alert">${problem.value}</p>`;
  if (source.value === null) return html`<h1 aria-busy="true">Play</h1>`;
  const { address, name, job, index, path } = source.value;
  const isPublication = /\.m3u8$/i.test(new URL(address).pathname);
  return html`
    <hgroup><h1 class="path">${name}</h1>${job !== null && html`<p><a href=${linkTo(['inspect'], { job, index, path: path ?? '' })}>Inspect</a> · <a href=${linkTo(['jobs', job])}>Job</a></p>`}</hgroup>
    <${isPublication ? PublicationView : FileView} key=${address} name=${name} source=${source.value} />
  `;
}

/**
 * Returns what the address of the page names: a file below this page (`src`), a file of an output, or its entry.
 * @param {URLSearchParams} query
 * @returns {Promise<Source>}
 */
async function sourceOf(query) {
  const [job, index, src, path] = [query.get('job'), query.get('index') ?? '0', query.get('src'), query.get('path')];
  if (src !== null) {
    const address = addressOf(src);
    if (!address.startsWith(addressOf(''))) throw new Error('Only what this service serves can be played here.');
    return { address, name: decodeURIComponent(address.split('/').at(-1) ?? ''), job: null, index, path: null };
  }
  if (job === null) throw new Error('Choose an output of a job to play: each job has a link for it.');
  const entry = path ?? entryOf(await listOutput(job, index))?.path;
  if (entry === undefined) throw new Error('The output has no playlist that a browser can play. Inspect verifies it.');
  const { name } = await locateOutput(job, index, path);
  return { address: outputAddress(job, index, entry), name, job, index, path };
}

/** @param {{ name: string, source: Source }} props */
function FileView({ name, source }) {
  const reading = useSignal(/** @type {Reading | null} */ (null));
  const problem = useSignal('');
  const unplayable = useSignal(false);
  useEffect(() => {
    const gone = new AbortController();
    verifyFile(source, name, gone.signal).then(
      (found) => {
        reading.value = found;
      },
      (error) => {
        if (!gone.signal.aborted) problem.value = error.message;
      },
    );
    return () => gone.abort();
  }, [source.address]);
  const fail = () => {
    unplayable.value = true;
  };
  return html`
    ${
      unplayable.value
        ? html`<p class="notice" role="alert">This browser cannot play this file: it has no decoder for its format or codec, or the file is damaged. It is verified all the same.</p>`
        : AUDIO_NAME.test(name)
          ? html`<audio controls src=${source.address} aria-label=${name} onError=${fail}></audio>`
          : html`<video controls src=${source.address} aria-label=${name} onError=${fail}></video>`
    }
    ${problem.value !== '' && html`<p class="notice" role="alert">It is not verified. ${problem.value}</p>`}
    <div aria-live="polite">${reading.value ? html`<${Provenance} reading=${reading.value} />` : problem.value === '' && html`<p aria-busy="true">Verifying the whole file …</p>`}</div>
  `;
}

/**
 * Has the service verify an output, whose bytes no hash covers too; the browser reads a file that is none.
 * @param {Source} source
 * @param {string} name
 * @param {AbortSignal} signal
 */
async function verifyFile({ address, job, index, path }, name, signal) {
  if (job === null) return await readAddress(address, name, signal);
  return await verifyOutput(await locateOutput(job, index, path), { signal });
}

/** @param {{ name: string, source: Source }} props */
function PublicationView({ name, source: { address } }) {
  const video = useRef(/** @type {HTMLVideoElement | null} */ (null));
  const player = useSignal(/** @type {PublicationPlayer | null} */ (null));
  const time = useSignal(0);
  useEffect(() => {
    if (video.current === null) return;
    const started = new PublicationPlayer(video.current, address);
    player.value = started;
    return () => started.close();
  }, [address]);
  const seek = (/** @type {number} */ seconds) => {
    if (video.current !== null) video.current.currentTime = seconds;
  };
  return html`<div class="player">
    <div>
      <video
        ref=${video}
        controls
        playsinline
        aria-label=${name}
        onTimeUpdate=${(/** @type {any} */ { target }) => {
          time.value = target.currentTime;
        }}
      ></video>
      ${player.value && html`<${PlayerState} player=${player.value} time=${time.value} seek=${seek} />`}
    </div>
    ${player.value && html`<${OnScreenProvenance} player=${player.value} time=${time.value} />`}
  </div>`;
}

/** @param {{ player: PublicationPlayer, time: number, seek: (seconds: number) => void }} props */
function PlayerState({ player, time, seek }) {
  const { renditions, problem, canRetry, left } = player;
  const failure = firstFailure(player);
  const { compared, problem: notCompared } = player.presentation;
  const isComplete = renditions.value.every(({ fragments }) => fragments.every(({ reading }) => reading !== null));
  return html`
    ${failure && html`<p class="notice" role="alert" data-seconds=${failure.start} data-index=${failure.index}>From <strong>${clockText(failure.start)}</strong> on, this is not what was signed: fragment ${failure.index} of ${failure.rendition}. ${failure.reading.verification.summary}</p>`}
    ${compared.value?.state === 'changed' && html`<p class="notice" role="alert">${player.presentation.summary}</p>`}
    ${notCompared.value && html`<p class="notice" role="status">${notCompared.value}</p>`}
    ${problem.value && html`<p class="notice" role="alert">${problem.value}${canRetry.value && html` <button type="button" class="secondary outline small" onClick=${() => player.retry()}>Try again</button>`}</p>`}
    <div class="player-controls">
      <${OnScreen} player=${player} time=${time} />
      <${Choice} label="Resolution" choices=${player.levels.value} automatic choose=${(/** @type {number} */ id) => player.chooseLevel(id)} />
      <${Choice} label="Language" choices=${player.languages.value} choose=${(/** @type {number} */ id) => player.chooseLanguage(id)} />
      ${
        !isComplete &&
        html`<button type="button" class="secondary outline small" disabled=${left.value >= 0} onClick=${() => player.verifyAll()}>${left.value >= 0 ? `${left.value} to verify` : 'Verify all fragments'}</button>`
      }
    </div>
    ${renditions.value.map((rendition) => html`<${Timeline} key=${rendition.key} rendition=${rendition} changedAt=${player.presentation.changedAt(rendition.key)} time=${time} seek=${seek} />`)}
  `;
}

/** @param {{ label: string, choices: import('./publication-player.js').Choices, automatic?: boolean, choose: (id: number) => void }} props */
function Choice({ label, choices: { choices, chosen }, automatic = false, choose }) {
  if (choices.length < 2) return null;
  return html`<label>${label}
    <select value=${chosen} onChange=${(/** @type {any} */ { target }) => choose(Number(target.value))}>
      ${automatic && html`<option value="-1">Automatic</option>`}
      ${choices.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
    </select></label>`;
}

/** @param {PublicationPlayer} player */
function firstFailure({ renditions, presentation }) {
  const failures = renditions.value.flatMap(({ name, fragments }) =>
    fragments.flatMap(({ index, start, reading }) =>
      reading !== null && presentation.isFailure(reading) ? [{ index, start, reading, rendition: name }] : [],
    ),
  );
  return failures.reduce((first, failure) => (first && first.start <= failure.start ? first : failure), failures[0]);
}

/**
 * Returns the reading of what is on screen: the worst of the fragments that were verified.
 * @param {PublicationPlayer} player
 * @param {number} time
 */
function readingAt({ renditions, presentation }, time) {
  const current = renditions.value.flatMap(({ fragments }) =>
    fragmentsAt(fragments, time).flatMap(({ reading }) => reading ?? []),
  );
  return (
    current.find((reading) => presentation.isFailure(reading)) ??
    current.find(({ verification: { state } }) => state !== 'none') ??
    current[0]
  );
}

/** @param {{ player: PublicationPlayer, time: number }} props */
function OnScreen({ player, time }) {
  const fragment = readingAt(player, time);
  const reading = fragment && player.presentation.judge(fragment, firstFailure(player) !== undefined);
  if (reading === undefined) return html`<p class="muted on-screen">Nothing of what is on screen is verified yet.</p>`;
  return html`<p class="on-screen">On screen now: <${StateMark} state=${reading.verification.state} /></p>`;
}

/**
 * Shows the manifest of what is on screen; before anything is, that of the first fragment that was verified.
 * @param {{ player: PublicationPlayer, time: number }} props
 */
function OnScreenProvenance({ player, time }) {
  const renditions = player.renditions.value;
  const known = renditions.flatMap(({ fragments }) => fragments.flatMap(({ reading }) => reading ?? []));
  const current = readingAt(player, time);
  // Fragments share their manifest: that of the rendition that was read in detail says most.
  const detailed = known.find(
    ({ raw, verification: { state } }) => raw !== null && state === current?.verification.state,
  );
  const reading = (current && player.presentation.isFailure(current) ? current : detailed) ?? current ?? known[0];
  const isPart = firstFailure(player) !== undefined;
  return reading ? html`<${Provenance} reading=${player.presentation.judge(reading, isPart)} />` : null;
}
