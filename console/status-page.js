import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addressOf, call, loginNeeded, poll } from './api.js';
import { html } from './html.js';
import { Sparkline } from './sparkline.js';
import { durationText, exactTime, sizeText } from './text.js';

/** @typedef {import('../src/contract/service.ts').Readiness} Readiness */
/** @typedef {import('../src/contract/service.ts').ShownConfig} ShownConfig */

const UNKNOWN = 'not known now';
const DAY_MS = 86_400_000;
const METRICS_INTERVAL_MS = 5000;
/** Samples that are drawn: five minutes. */
const MAX_SAMPLES = 60;
/** An identity that expires within this time is pointed out. */
const EXPIRY_WARNING_MS = 30 * DAY_MS;

/** @param {{ readiness: import('@preact/signals').Signal<Readiness | null> }} props */
export function StatusPage({ readiness }) {
  const configuration = useSignal(/** @type {ShownConfig | null} */ (null));
  const problem = useSignal('');
  const login = loginNeeded.value;
  useEffect(() => {
    call('GET', 'v2/configuration').then(
      (found) => {
        configuration.value = found;
        problem.value = '';
      },
      (error) => {
        problem.value = error.message;
      },
    );
  }, [login]);
  const state = readiness.value;
  if (state === null) return html`<h1 aria-busy="true">Status</h1>`;
  return html`
    <h1>Status <span class="state ${state.ready ? 'good' : 'bad'}">${state.ready ? 'ready' : 'not ready'}</span></h1>
    <${Checks} state=${state} configuration=${configuration.value} />
    <h2>Since the start of this node</h2>
    <${Numbers} />
    <h2>Configuration in force</h2>
    ${problem.value !== '' && html`<p>${problem.value}</p>`}
    ${configuration.value !== null && html`<${Settings} configuration=${configuration.value} />`}
    <p><a href=${addressOf('metrics')}>Metrics</a> · <a href=${addressOf('docs')}>API reference</a></p>
  `;
}

/** @param {{ state: Readiness, configuration: ShownConfig | null }} props */
function Checks({ state: { version, role, store, queue, workers }, configuration }) {
  const hasSpace = queue && queue.waiting < queue.capacity;
  return html`<dl class="facts">
    <dt>Version</dt><dd>${version}, role ${role}</dd>
    <dt>Job store</dt><dd><${Mark} good=${store?.reachable} words=${['reachable', 'out of reach']} /> ${store?.engine}</dd>
    <dt>Queue</dt><dd><${Mark} good=${hasSpace} words=${['has space', 'full']} /> ${queue?.waiting} of ${queue?.capacity.toLocaleString('en')} inputs wait</dd>
    <dt>Workers</dt><dd>${workers?.running} of ${workers?.limit} busy, ${workers?.processes === 1 ? 'one process' : `${workers?.processes} processes`}</dd>
    ${configuration?.identity && html`<dt>Signing identity</dt><dd><${Identity} identity=${configuration.identity} /></dd>`}
  </dl>`;
}

/** @param {{ identity: NonNullable<ShownConfig['identity']> }} props */
function Identity({ identity: { kind, subject, algorithm, not_after: expiry } }) {
  const leftMs = Date.parse(expiry) - Date.now();
  const isSoon = leftMs < EXPIRY_WARNING_MS;
  const days = Math.floor(leftMs / DAY_MS);
  const left = leftMs < 0 ? 'has expired' : days === 1 ? 'expires in one day' : `expires in ${days} days`;
  const when = html`<time datetime=${expiry} title=${exactTime(expiry)}>${left}</time>`;
  return html`
    ${kind === 'development' ? html`<${Mark} good=${false} words=${['', 'development identity']} />` : html`<${Mark} good=${!isSoon} words=${['in order', leftMs > 0 ? 'expires soon' : 'expired']} />`}
    ${' '}<span class="path">${subject}</span> (${algorithm}), ${when}
    ${kind === 'development' && html`<br /><span class="muted">Nobody has a reason to trust it. Set <code>signing.certificate_path</code> before outputs are published.</span>`}
  `;
}

/** @param {{ good: boolean | undefined, words: [string, string] }} props */
function Mark({ good, words: [yes, no] }) {
  return html`<span class="state ${good ? 'good' : 'bad'}">${good ? yes : no}</span>`;
}

/** Shows a few numbers of the node's metrics, and how they changed while the page was open. */
function Numbers() {
  const samples = useSignal(/** @type {readonly Sample[]} */ ([]));
  useEffect(() => {
    const gone = new AbortController();
    const look = async () => {
      try {
        const response = await fetch(addressOf('metrics'), { signal: gone.signal });
        if (!response.ok) return;
        samples.value = [...samples.value, sampleOf(await response.text())].slice(-MAX_SAMPLES);
      } catch {
        // The service is out of reach, or the page was left while the answer came: the numbers stay as they are.
      }
    };
    void poll(look, METRICS_INTERVAL_MS, gone.signal);
    return () => gone.abort();
  }, []);
  const last = samples.value.at(-1);
  if (last === undefined) return html`<p class="muted">No metrics are available.</p>`;
  const rates = ratesOf(samples.value);
  const facts = [
    ['Inputs that succeeded', countText(last.succeeded), rates.map(({ succeeded }) => succeeded)],
    ['Inputs that failed', countText(last.failed), rates.map(({ failed }) => failed)],
    ['Bytes of outputs', sizeText(last.bytes), rates.map(({ bytes }) => bytes)],
    ['Inputs that wait', countText(last.waiting), samples.value.map(({ waiting }) => waiting)],
    [
      'Longest wait now',
      Number.isNaN(last.oldestSeconds) ? UNKNOWN : durationText(last.oldestSeconds * 1000),
      samples.value.map(({ oldestSeconds }) => oldestSeconds),
    ],
    ['Callbacks that wait', countText(last.callbacks), samples.value.map(({ callbacks }) => callbacks)],
  ];
  return html`<dl class="facts numbers">${facts.map(([label, value, values]) => html`<dt>${label}</dt><dd>${value} <${Sparkline} values=${values} /></dd>`)}</dl>
    ${samples.value.length > 2 && html`<p class="muted">The lines show the last ${durationText(samples.value.length * METRICS_INTERVAL_MS)} on this page; of totals, what was added.</p>`}`;
}

/**
 * Formats a count; the service does not know those of its store while that is out of reach.
 * @param {number} count
 */
function countText(count) {
  return Number.isNaN(count) ? UNKNOWN : count.toLocaleString('en');
}

/**
 * @typedef {ReturnType<typeof sampleOf>} Sample
 * @param {string} text metrics in the text format of Prometheus
 */
function sampleOf(text) {
  return {
    succeeded: sumOf(text, 'attestream_input_runs_total', 'end="succeeded"'),
    failed: sumOf(text, 'attestream_input_runs_total', 'end="failed"'),
    bytes: sumOf(text, 'attestream_output_bytes_total'),
    waiting: sumOf(text, 'attestream_inputs', 'state="queued"'),
    oldestSeconds: sumOf(text, 'attestream_queue_oldest_seconds'),
    callbacks: sumOf(text, 'attestream_callbacks_waiting'),
  };
}

/** @param {readonly Sample[]} samples */
function ratesOf(samples) {
  return samples.slice(1).map(({ succeeded, failed, bytes }, index) => {
    const before = samples[index];
    return {
      succeeded: succeeded - (before?.succeeded ?? 0),
      failed: failed - (before?.failed ?? 0),
      bytes: bytes - (before?.bytes ?? 0),
    };
  });
}

/**
 * Returns the sum of a metric over its label sets, in the text format of Prometheus.
 * @param {string} text
 * @param {string} name
 * @param {string} [label] only sets with this label
 */
function sumOf(text, name, label = '') {
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(label))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** @param {{ configuration: ShownConfig }} props */
function Settings({ configuration: { settings, withheld } }) {
  const sections = Map.groupBy(Object.entries(settings), ([key]) => key.split('.', 1)[0] ?? '');
  return html`
    ${[...sections].map(
      ([section, entries]) => html`<details><summary>${section}</summary><dl class="facts">
        ${entries.map(([key, value]) => html`<dt><code>${key.slice(section.length + 1)}</code></dt><dd>${Array.isArray(value) ? value.join(', ') || 'none' : String(value)}</dd>`)}
      </dl></details>`,
    )}
    ${withheld.length > 0 && html`<p class="muted">Set, and not shown: ${withheld.join(', ')}.</p>`}
  `;
}
