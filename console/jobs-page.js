import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call, loginNeeded, poll } from './api.js';
import { html } from './html.js';
import { linkTo, route } from './router.js';
import { ageText, exactTime, shareOf, sizeText } from './text.js';

/** @typedef {import('./api.js').ListedJob} ListedJob */

const LIST_INTERVAL_MS = 2000;
const PAGE_SIZE = 50;

/** The clock that ages are told by. */
const now = signal(Date.now());

/** Lists jobs, newest first. The filter stands in the address, so that it can be shared. */
export function JobsPage() {
  const status = route.value.query.get('status') ?? '';
  /** @type {import('@preact/signals').Signal<ListedJob[] | null>} */
  const jobs = useSignal(null);
  const cursor = useSignal(/** @type {string | null} */ (null));
  const problem = useSignal('');
  const count = useSignal(PAGE_SIZE);
  const login = loginNeeded.value;
  useEffect(() => {
    const gone = new AbortController();
    const look = async () => {
      try {
        const page = await call(
          'GET',
          `v2/jobs?${new URLSearchParams({ limit: String(Math.min(200, count.value)), ...(status && { status }) })}`,
          { signal: gone.signal },
        );
        jobs.value = page.jobs;
        cursor.value = page.next_cursor;
        problem.value = '';
        now.value = Date.now();
      } catch (error) {
        if (!gone.signal.aborted) problem.value = String(/** @type {any} */ (error).message);
      }
    };
    void poll(look, LIST_INTERVAL_MS, gone.signal);
    return () => gone.abort();
  }, [status, login]);
  return html`
    <h1>Jobs</h1>
    <${Filter} status=${status} />
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    ${jobs.value !== null && (jobs.value.length === 0 ? html`<${NoJobs} filtered=${status !== ''} />` : html`<${JobTable} jobs=${jobs.value} />`)}
    ${
      cursor.value !== null &&
      count.value < 200 &&
      html`<button class="secondary" onClick=${() => {
        count.value = 200;
      }}>Show more</button>`
    }
  `;
}

/** @param {{ status: string }} props */
function Filter({ status }) {
  const states = ['', 'queued', 'running', 'succeeded', 'failed'];
  return html`<p role="group" aria-label="Filter by state" class="filter">
    ${states.map((state) => html`<a role="button" class=${state === status ? '' : 'outline secondary'} aria-current=${state === status ? 'true' : undefined} href=${linkTo(['jobs'], { status: state })}>${state || 'all'}</a>`)}
  </p>`;
}

/** @param {{ filtered: boolean }} props */
function NoJobs({ filtered }) {
  if (filtered) return html`<p>No job is in this state.</p>`;
  const example = `curl -s ${new URL('v2/c2pa/video', document.baseURI).href} \\
  -H 'content-type: application/json' \\
  -d '{"inputs": [{"type": "local_file_path", "path": "/media/film.mp4"}]}'`;
  return html`<p>No jobs yet. Start with one of these:</p>
    <p class="filter">
      <a role="button" href=${linkTo(['new', 'video'])}>Sign a file</a>
      <a role="button" class="outline" href=${linkTo(['new', 'package-and-sign'])}>Package a folder</a>
      <a role="button" class="outline" href=${linkTo(['inspect'])}>Inspect a file</a>
    </p>
    <p>Or on the command line:</p><pre tabindex="0"><code>${example}</code></pre>`;
}

/** @param {{ jobs: ListedJob[] }} props */
function JobTable({ jobs }) {
  return html`<div class="wide"><table>
    <thead><tr><th>State</th><th>Job</th><th>Progress</th><th>Submitted</th><th>Caller</th></tr></thead>
    <tbody>${jobs.map((job) => html`<${JobRow} key=${job.job_id} job=${job} />`)}</tbody>
  </table></div>`;
}

/** @param {{ job: ListedJob }} props */
function JobRow({ job: { job_id: id, status, progress, timing, caller } }) {
  return html`<tr>
    <td><span class="state ${status}">${status}</span></td>
    <td><a href=${linkTo(['jobs', id])}><code>${id}</code></a></td>
    <td>${progress && html`<progress value=${shareOf(progress)} max="1" aria-label="Progress"></progress><small class="muted">${progress.inputs_done} of ${progress.inputs_total} inputs, ${sizeText(progress.bytes_done)}</small>`}</td>
    <td><time datetime=${timing.queued_at} title=${exactTime(timing.queued_at)}>${ageText(timing.queued_at, now.value)}</time></td>
    <td>${caller ?? ''}</td>
  </tr>`;
}
