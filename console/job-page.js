import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addressOf, call, loginNeeded } from './api.js';
import { html } from './html.js';
import { outputAddress } from './outputs.js';
import { linkTo } from './router.js';
import { durationText, exactTime, sizeText } from './text.js';

/** @typedef {import('./api.js').Job} Job */
/** @typedef {import('./api.js').ResultEntry} ResultEntry */

/**
 * Shows one job: its state as it changes, and what became of each input, failed ones first.
 * @param {{ id: string }} props
 */
export function JobPage({ id }) {
  /** @type {import('@preact/signals').Signal<Job | null>} */
  const job = useSignal(null);
  const problem = useSignal('');
  const login = loginNeeded.value;
  useEffect(() => follow(id, job, problem), [id, login]);
  if (problem.value !== '') return html`<h1>Job</h1><p class="notice" role="alert">${problem.value}</p>`;
  if (job.value === null) return html`<h1 aria-busy="true">Job</h1>`;
  const { status, progress, timing, caller, results } = job.value;
  const cancel = () =>
    call('DELETE', `v2/jobs/${id}`).catch((error) => {
      problem.value = error.message;
    });
  return html`
    <hgroup><h1>Job <span class="state ${status}">${status}</span></h1><p><code>${id}</code>${caller && html`, submitted by ${caller}`}</p></hgroup>
    ${
      progress &&
      html`<progress value=${progress.fraction} max="1" aria-label="Progress"></progress>
      <p class="muted">${progress.inputs_done} of ${progress.inputs_total} inputs, ${sizeText(progress.bytes_done)} of ${sizeText(progress.bytes_total)}</p>
      <button class="secondary" onClick=${cancel}>Cancel</button>`
    }
    <${Times} timing=${timing} />
    ${results.length > 0 && html`<h2>Inputs</h2>${[...results].sort(failedFirst).map((entry) => html`<${InputResult} key=${entry.input_index} jobId=${id} entry=${entry} />`)}`}
  `;
}

/**
 * Follows a job by server-sent events until it has finished; returns what ends that.
 * @param {string} id
 * @param {import('@preact/signals').Signal<Job | null>} job
 * @param {import('@preact/signals').Signal<string>} problem
 */
function follow(id, job, problem) {
  const events = new EventSource(addressOf(`v2/jobs/${encodeURIComponent(id)}/events`));
  events.addEventListener('progress', ({ data }) => {
    job.value = JSON.parse(data);
  });
  events.addEventListener('done', ({ data }) => {
    job.value = JSON.parse(data);
    events.close();
  });
  // An error that ends the stream says nothing of its cause; a look-up does. The browser connects again by itself otherwise.
  events.addEventListener('error', () => {
    if (events.readyState !== EventSource.CLOSED) return;
    call('GET', `v2/jobs/${encodeURIComponent(id)}`).then(
      (found) => {
        job.value = found;
      },
      (error) => {
        problem.value = error.message;
      },
    );
  });
  return () => events.close();
}

/** @param {ResultEntry} a @param {ResultEntry} b */
function failedFirst(a, b) {
  return Number(a.status === 'succeeded') - Number(b.status === 'succeeded') || a.input_index - b.input_index;
}

/** @param {{ timing: Job['timing'] }} props */
function Times({ timing: { queued_at: queued, started_at: started, finished_at: finished } }) {
  return html`<dl class="facts">
    <dt>Submitted</dt><dd>${exactTime(queued)}</dd>
    ${started && html`<dt>Waited</dt><dd>${durationText(Date.parse(started) - Date.parse(queued))}</dd>`}
    ${started && finished && html`<dt>Ran</dt><dd>${durationText(Date.parse(finished) - Date.parse(started))}</dd>`}
  </dl>`;
}

/** @param {{ jobId: string, entry: ResultEntry }} props */
function InputResult({ jobId, entry }) {
  const { input_index: index, status, output_path: output, error, error_details: details, warnings = [] } = entry;
  const place = { job: jobId, index: String(index) };
  return html`<article class="input">
    <header><span class="state ${status}">${status}</span> Input ${index}</header>
    ${error && html`<p>${error}</p>`}
    ${details?.reason && html`<p class="muted">Reason <code>${details.reason}</code></p>`}
    ${output && html`<p><code class="path">${output}</code></p>`}
    ${
      output &&
      html`<p>
      <a href=${linkTo(['play'], place)}>Play</a>
      ${' · '}<a href=${linkTo(['inspect'], place)}>Inspect</a>
      ${isFile(output) && html` · <a href=${outputAddress(jobId, index, nameOf(output))} download>Download</a>`}
    </p>`
    }
    ${warnings.length > 0 && html`<details><summary>${warnings.length === 1 ? 'One warning' : `${warnings.length} warnings`}</summary><ul>${warnings.map((text) => html`<li>${text}</li>`)}</ul></details>`}
  </article>`;
}

/** @param {string} path */
function nameOf(path) {
  return path.split('/').at(-1) ?? '';
}

/**
 * Tells whether an output is a file: a publication is a folder, whose name rarely ends like that of a media file.
 * @param {string} path
 */
function isFile(path) {
  return /\.(mp4|m4v|mov|qt|3gp|3g2|m4a|mp3|wav|flac|avi)$/i.test(path);
}
