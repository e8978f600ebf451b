import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call } from './api.js';
import { html } from './html.js';
import { InputResults } from './input-results.js';
import { InputTable } from './input-table.js';
import { jobName } from './job-name.js';
import { follow } from './live.js';
import { OPERATIONS } from './operations.js';
import { Rates } from './rates.js';
import { RequestView } from './request-view.js';
import { linkTo } from './router.js';
import { durationText, exactTime, sizeText } from './text.js';
import { Waiting } from './waiting.js';

/** @typedef {import('./api.js').Job} Job */
/** @typedef {import('./api.js').ResultEntry} ResultEntry */

const rates = new Rates();

/** Jobs of more inputs are batches: a table, and not a card for each input. */
const MAX_CARDS = 5;

/**
 * Shows one job: its state as it changes, what became of each input, and what was asked for.
 * @param {{ id: string }} props
 */
export function JobPage({ id }) {
  /** @type {import('@preact/signals').Signal<Job | null>} */
  const job = useSignal(null);
  /** @type {import('@preact/signals').Signal<readonly ResultEntry[]>} */
  const entries = useSignal([]);
  const problem = useSignal('');
  useEffect(() => followJob(id, { job, entries, problem }), [id]);
  if (job.value === null)
    return problem.value === ''
      ? html`<h1 aria-busy="true">Job</h1>`
      : html`<h1>Job</h1><p class="notice" role="alert">${problem.value}</p>`;
  const retry = (/** @type {object | undefined} */ choice) =>
    call('POST', `v2/jobs/${encodeURIComponent(id)}/retry`, { body: choice }).then(
      (started) => {
        location.hash = linkTo(['jobs', started.job_id]);
      },
      (error) => {
        problem.value = error.message;
      },
    );
  const { status, timing, caller, identity, operation, labels = {}, retried_from: retried } = job.value;
  return html`
    <div class="title">
      <hgroup>
      <h1 class="path">${jobName(job.value)} <span class="state ${status}">${status}</span></h1>
      <p>${OPERATIONS[operation]?.text}${identity && html`, identity ${identity}`}${caller && html`, submitted by ${caller}`}${retried && html`, <a href=${linkTo(['jobs', retried])}>retried from another job</a>`} · <code class="path">${id}</code></p>
      <${Times} timing=${timing} />
      </hgroup>
      <${Actions} job=${job.value} problem=${problem} onRetry=${retry} />
    </div>
    ${Object.keys(labels).length > 0 && html`<p class="filter labels">${Object.entries(labels).map(([name, value]) => html`<a class="state" href=${linkTo(['jobs'], { label: `${name}=${value}` })}>${name}=${value}</a>`)}</p>`}
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    <${Progress} job=${job.value} />
    <${Waiting} waiting=${job.value.waiting_for ?? []} />
    ${entries.value.length > 0 && html`<${Inputs} job=${job.value} entries=${entries.value} onRetry=${retry} />`}
    <${Request} id=${id} />
  `;
}

/**
 * Follows a job until it has finished; returns what ends that.
 * @param {string} id
 * @param {{ job: import('@preact/signals').Signal<Job | null>, entries: import('@preact/signals').Signal<readonly ResultEntry[]>, problem: import('@preact/signals').Signal<string> }} state
 */
function followJob(id, { job, entries, problem }) {
  const path = `v2/jobs/${encodeURIComponent(id)}`;
  const over = new AbortController();
  /** @param {Job} found */
  const show = (found) => {
    job.value = found;
    problem.value = '';
    if (found.results.length > 0) entries.value = found.results;
    if (found.timing.finished_at !== undefined) over.abort();
  };
  /** @param {Job} event */
  const addEntries = ({ results, ...rest }) => {
    const known = new Set(results.map(({ input_index: index }) => index));
    show({ ...rest, results: [...entries.value.filter((entry) => !known.has(entry.input_index)), ...results] });
  };
  const refresh = () =>
    call('GET', path, { signal: over.signal }).then(show, (error) => {
      if (over.signal.aborted) return;
      // The page says by itself that the service is out of reach, or asks for a login.
      if (![0, 401].includes(error.status)) problem.value = error.message;
      if (error.status === 404) over.abort();
    });
  follow(`${path}/events`, { progress: show, input: addEntries, done: show }, refresh, over.signal);
  return () => over.abort();
}

/** @param {{ job: Job }} props */
function Progress({ job: { job_id: id, progress } }) {
  if (progress === undefined) return null;
  const { inputs_done: done, inputs_total: total, bytes_done: bytes, bytes_total: allBytes } = progress;
  const rate = rates.rateOf(id, bytes, Date.now());
  return html`<progress value=${progress.fraction} max="1" aria-label="Progress"></progress>
    <p class="muted">${done.toLocaleString('en')} of ${total.toLocaleString('en')} inputs, ${sizeText(bytes)} of ${sizeText(allBytes)}${rate > 0 && `, ${sizeText(rate)}/s`}</p>`;
}

/** @param {{ job: Job, problem: import('@preact/signals').Signal<string>, onRetry: () => void }} props */
function Actions({ job: { job_id: id, progress, counts }, problem, onRetry }) {
  const cancel = () =>
    call('DELETE', `v2/jobs/${id}`).catch((error) => {
      problem.value = error.message;
    });
  if (progress !== undefined) return html`<button class="secondary" onClick=${cancel}>Cancel</button>`;
  return (
    counts.failed > 0 &&
    html`<button onClick=${() => onRetry()}>${counts.failed === 1 ? 'Retry the failed input' : `Retry ${counts.failed.toLocaleString('en')} failed inputs`}</button>`
  );
}

/** @param {{ job: Job, entries: readonly ResultEntry[], onRetry: (choice: object) => void }} props */
function Inputs({ job, entries, onRetry }) {
  const { job_id: id, operation, input_count: count, progress } = job;
  if (count === 1) return html`<h2>Input</h2><${InputResults} jobId=${id} operation=${operation} entries=${entries} />`;
  const isBatch = count > MAX_CARDS;
  return html`<h2>Inputs</h2>
    ${
      isBatch
        ? html`<${InputTable} job=${job} entries=${entries} onRetry=${progress === undefined ? onRetry : null} />`
        : html`<p class="muted">${countsText(job.counts)}</p><${InputResults} jobId=${id} operation=${operation} entries=${entries} />`
    }`;
}

/** @param {Job['counts']} counts */
function countsText(counts) {
  return /** @type {const} */ (['failed', 'cancelled', 'succeeded'])
    .filter((status) => counts[status] > 0)
    .map((status) => `${counts[status].toLocaleString('en')} ${status}`)
    .join(', ');
}

/** @param {{ timing: Job['timing'] }} props */
function Times({ timing: { queued_at: queued, started_at: started, finished_at: finished } }) {
  const facts = [
    `Submitted ${exactTime(queued)}`,
    started && `waited ${durationText(Date.parse(started) - Date.parse(queued))}`,
    started && finished && `ran ${durationText(Date.parse(finished) - Date.parse(started))}`,
  ];
  return html`<p>${facts.filter(Boolean).join(', ')}</p>`;
}

/** Shows the request of a job once somebody asks for it: it may have megabytes. @param {{ id: string }} props */
function Request({ id }) {
  const request = useSignal(/** @type {import('../src/contract/job.ts').JobRequestResponse | null} */ (null));
  const problem = useSignal('');
  /** @param {Event} event */
  const load = (event) => {
    if (!(/** @type {HTMLDetailsElement} */ (event.target).open) || request.value !== null) return;
    call('GET', `v2/jobs/${encodeURIComponent(id)}/request`).then(
      (found) => {
        request.value = found;
        problem.value = '';
      },
      (error) => {
        problem.value = error.message;
      },
    );
  };
  return html`<details class="request" onToggle=${load}>
    <summary>The request</summary>
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    ${request.value !== null && html`<${RequestView} path=${request.value.path.slice(1)} request=${request.value.body} />`}
  </details>`;
}
