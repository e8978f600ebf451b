import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useCurl } from './curl.js';
import { html } from './html.js';
import { JobList } from './job-list.js';
import { jobName } from './job-name.js';
import { follow } from './live.js';
import { OPERATIONS } from './operations.js';
import { Rates } from './rates.js';
import { linkTo, route } from './router.js';
import { ageText, durationText, exactTime, inputsText, sizeText } from './text.js';
import { VirtualRows } from './virtual-rows.js';
import { waitingText } from './waiting.js';

/** @typedef {import('./api.js').ListedJob} ListedJob */

/** The clock that ages are told by. */
const now = signal(Date.now());

const rates = new Rates();

/** Filters of lists, as the API and the address name it. */
const FILTERS = ['status', 'operation', 'client_reference', 'label', 'caller'];

/** Lists jobs, newest first. The filter stands in the address, so that it can be shared. */
export function JobsPage() {
  const { query } = route.value;
  /** @type {Record<string, string>} */
  const filter = Object.fromEntries(
    FILTERS.map((name) => [name, query.get(name) ?? '']).filter(([, value]) => value !== ''),
  );
  return html`
    <h1>Jobs</h1>
    <${Filters} filter=${filter} />
    <${Jobs} key=${JSON.stringify(filter)} filter=${filter} />
  `;
}

/** @param {{ filter: Record<string, string> }} props */
function Filters({ filter }) {
  const states = ['', 'queued', 'running', 'succeeded', 'failed'];
  const { status = '', operation = '' } = filter;
  const others = Object.entries(filter).filter(([name]) => !['status', 'operation'].includes(name));
  /** @param {string} name @param {string} value */
  const changed = (name, value) => linkTo(['jobs'], { ...filter, [name]: value });
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    location.hash = changed(String(data.get('by')), String(data.get('value')).trim());
  };
  /** @param {Event} event */
  const choose = (event) => {
    location.hash = changed('operation', /** @type {HTMLSelectElement} */ (event.target).value);
  };
  return html`
    <p role="group" aria-label="Filter by state" class="filter">
      ${states.map((state) => html`<a role="button" class=${state === status ? '' : 'outline secondary'} aria-current=${state === status ? 'true' : undefined} href=${changed('status', state)}>${state || 'all'}</a>`)}
    </p>
    <form class="filter" onSubmit=${submit}>
      <select aria-label="Operation" value=${operation} onChange=${choose}>
        <option value="">all operations</option>
        ${Object.entries(OPERATIONS).map(([name, { text }]) => html`<option value=${name}>${text}</option>`)}
      </select>
      <select aria-label="Find by" name="by">
        <option value="client_reference">reference</option><option value="label">label (name=value)</option><option value="caller">caller</option>
      </select>
      <input aria-label="Text to find" name="value" type="search" required autocomplete="off" placeholder="exact" />
      <button type="submit" class="secondary outline">Find</button>
    </form>
    ${others.length > 0 && html`<p class="filter">${others.map(([name, value]) => html`<a role="button" class="outline" href=${changed(name, '')} aria-label=${`Remove the filter ${name}: ${value}`}>${name.replace('_', ' ')}: ${value} ×</a>`)}</p>`}
  `;
}

/**
 * Shows the jobs of a filter as they change. The rows stay where they are while somebody has scrolled down, points at them or has
 * the focus in them: then a button shows what is new.
 * @param {{ filter: Record<string, string> }} props
 */
function Jobs({ filter }) {
  const problem = useSignal('');
  const gone = useMemo(() => new AbortController(), []);
  const list = useMemo(() => new JobList(filter, gone.signal), []);
  const region = useRef(/** @type {HTMLElement | null} */ (null));
  const firstInView = useRef(/** @type {string | undefined} */ (undefined));
  /** @param {Promise<void>} loading */
  const report = (loading) =>
    loading.then(
      () => {
        problem.value = '';
        now.value = Date.now();
      },
      (error) => {
        // The page says by itself that the service is out of reach, or asks for a login.
        if (!gone.signal.aborted && ![0, 401].includes(error.status)) problem.value = error.message;
      },
    );
  const holdIfInUse = () => list.hold(scrollY > 0 || region.current?.matches(':hover, :focus-within') === true);
  useEffect(() => {
    const refresh = () => {
      holdIfInUse();
      return report(list.refresh(firstInView.current));
    };
    /** @param {{ jobs: ListedJob[] }} event */
    const update = ({ jobs }) => {
      holdIfInUse();
      now.value = Date.now();
      if (list.update(jobs)) void report(list.refresh());
    };
    follow('v2/events', { jobs: update, reload: () => void refresh() }, refresh, gone.signal);
    return () => gone.abort();
  }, []);
  const showNewest = () => {
    scrollTo({ top: 0 });
    list.hold(false);
  };
  const rows = list.rows.value;
  return html`
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    ${rows !== null && rows.length === 0 && html`<${NoJobs} filtered=${Object.keys(filter).length > 0} />`}
    ${
      rows !== null &&
      rows.length > 0 &&
      html`<div ref=${region} class="job-list" onPointerLeave=${holdIfInUse}>
        <${JobTable} list=${list} onView=${(/** @type {string | undefined} */ id) => {
          firstInView.current = id;
        }} onNearEnd=${() => void report(list.loadMore())} />
      </div>
      <p class="withheld">${list.withheld.value > 0 && html`<button type="button" class="small" onClick=${showNewest}>Update the list (${list.withheld.value.toLocaleString('en')})</button>`}</p>`
    }
  `;
}

/** @param {{ filtered: boolean }} props */
function NoJobs({ filtered }) {
  const curlOf = useCurl();
  if (filtered) return html`<p>No job is like this.</p>`;
  const example = curlOf('v2/c2pa/video', '{"inputs": [{"type": "local_file_path", "path": "/media/film.mp4"}]}');
  return html`<p>No jobs yet. Start with one of these:</p>
    <p class="filter">
      <a role="button" href=${linkTo(['new', 'c2pa-video'])}>Sign a file</a>
      <a role="button" class="outline" href=${linkTo(['new', 'c2pa-package'])}>Package a folder</a>
      <a role="button" class="outline" href=${linkTo(['inspect'])}>Inspect a file</a>
    </p>
    <p>Or on the command line:</p><pre tabindex="0"><code>${example}</code></pre>`;
}

/**
 * The roles are given because the style sheet lays the rows out as grids, after which browsers take them for no table any more.
 * @param {{ list: JobList, onView: (first: string | undefined) => void, onNearEnd: () => void }} props
 */
function JobTable({ list, onView, onNearEnd }) {
  const ids = list.rows.value ?? [];
  list.version.value; // Rows are rendered again when a job in them has changed.
  const headings = ['State', 'Job', 'Inputs', 'Progress', 'Submitted', 'Caller'];
  return html`<table role="table" class="rows jobs" aria-rowcount=${list.isComplete.value ? ids.length + 1 : -1}>
    <thead role="rowgroup"><tr role="row" aria-rowindex="1">${headings.map((text) => html`<th role="columnheader" scope="col">${text}</th>`)}</tr></thead>
    <${VirtualRows} ids=${ids} row=${(/** @type {string} */ id, /** @type {number} */ index) => html`<${JobRow} key=${id} job=${list.job(id)} hasLeft=${list.hasLeft(id)} index=${index} />`} onView=${onView} onNearEnd=${onNearEnd} />
  </table>`;
}

/** Renders a row, again only where what it shows has changed: many rows pass by. @param {{ job: ListedJob, hasLeft: boolean, index: number }} props */
function JobRow({ job, hasLeft, index }) {
  const age = ageText(job.timing.queued_at, now.value);
  return useMemo(() => rowOf(job, hasLeft, index, age), [job, hasLeft, index, age]);
}

/** @param {ListedJob} job @param {boolean} hasLeft its state has changed since @param {number} index @param {string} age */
function rowOf(job, hasLeft, index, age) {
  const { job_id: id, status, timing, caller } = job;
  return html`<tr role="row" aria-rowindex=${index + 2}>
    <td role="cell"><span class="state ${hasLeft ? '' : status}">${hasLeft && 'not '}${status}</span></td>
    <td role="cell"><a href=${linkTo(['jobs', id])} title=${`${jobName(job)} (${id})`}>${jobName(job)}</a><${SecondLine} job=${job} /></td>
    <td role="cell"><${Inputs} job=${job} /></td>
    <td role="cell"><${Progress} job=${job} /></td>
    <td role="cell"><time datetime=${timing.queued_at} title=${exactTime(timing.queued_at)}>${age}</time></td>
    <td role="cell">${caller ?? ''}</td>
  </tr>`;
}

/** Says what inputs of a job wait for, else what the job does. @param {{ job: ListedJob }} props */
function SecondLine({ job: { operation, waiting_for: waiting = [] } }) {
  if (waiting.length === 0) return html`<small class="muted">${OPERATIONS[operation]?.text}</small>`;
  const text = waiting.map(waitingText).join('; ');
  return html`<small class="waits" title=${waiting.map(({ message }) => message).join('\n')}>${text}</small>`;
}

/** @param {{ job: ListedJob }} props */
function Inputs({ job: { input_count: count, counts, first_reason: reason } }) {
  return html`${count.toLocaleString('en')}${counts.failed > 0 && html`, <span class="bad">${counts.failed.toLocaleString('en')} failed</span>`}
    ${reason && html`<small class="muted" title=${`The first input that failed: ${reason}`}>${reason}</small>`}`;
}

/** @param {{ job: ListedJob }} props */
function Progress({ job: { job_id: id, status, progress, timing } }) {
  const { queued_at: queued, started_at: started = queued, finished_at: finished } = timing;
  if (progress === undefined)
    return (
      finished && html`<small class="muted">took ${durationText(Date.parse(finished) - Date.parse(started))}</small>`
    );
  if (status === 'queued') return html`<small class="muted">${inputsText(progress.inputs_total)} waiting</small>`;
  const rate = rates.rateOf(id, progress.bytes_done, now.peek());
  return html`<progress value=${progress.fraction} max="1" aria-label="Progress"></progress>
    <small class="muted">${progress.inputs_done} of ${inputsText(progress.inputs_total)}, ${sizeText(progress.bytes_done)}${rate > 0 && `, ${sizeText(rate)}/s`}</small>`;
}
