import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addressOf, call, loginNeeded, poll } from './api.js';
import { html } from './html.js';
import { durationText, sizeText } from './text.js';

/** @typedef {import('../src/contract/readiness.ts').Readiness} Readiness */
/** @typedef {import('../src/contract/configuration.ts').ShownConfig} ShownConfig */

const METRICS_INTERVAL_MS = 5000;

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
  const isDevelopment = configuration !== null && configuration.settings['signing.certificate_path'] === undefined;
  const hasSpace = queue && queue.waiting < queue.capacity;
  return html`<dl class="facts">
    <dt>Version</dt><dd>${version}, role ${role}</dd>
    <dt>Job store</dt><dd><${Mark} good=${store?.reachable} words=${['reachable', 'out of reach']} /> ${store?.engine}</dd>
    <dt>Queue</dt><dd><${Mark} good=${hasSpace} words=${['has space', 'full']} /> ${queue?.waiting} of ${queue?.capacity.toLocaleString('en')} inputs wait</dd>
    <dt>Workers</dt><dd>${workers?.running} of ${workers?.limit} busy, ${workers?.processes === 1 ? 'one process' : `${workers?.processes} processes`}</dd>
    ${
      configuration !== null &&
      role !== 'api' &&
      html`<dt>Signing identity</dt><dd>${
        isDevelopment
          ? html`<${Mark} good=${false} words=${['', 'development identity']} /> Nobody has a reason to trust it. Set signing.certificate_path before outputs are published.`
          : html`<code class="path">${configuration.settings['signing.certificate_path']}</code>`
      }</dd>`
    }
  </dl>`;
}

/** @param {{ good: boolean | undefined, words: [string, string] }} props */
function Mark({ good, words: [yes, no] }) {
  return html`<span class="state ${good ? 'good' : 'bad'}">${good ? yes : no}</span>`;
}

/** Shows a few numbers of the node's metrics. */
function Numbers() {
  const metrics = useSignal('');
  useEffect(() => {
    const gone = new AbortController();
    const look = async () => {
      const response = await fetch(addressOf('metrics'), { signal: gone.signal }).catch(() => null);
      if (response?.ok) metrics.value = await response.text();
    };
    void poll(look, METRICS_INTERVAL_MS, gone.signal);
    return () => gone.abort();
  }, []);
  const text = metrics.value;
  if (text === '') return html`<p class="muted">No metrics are available.</p>`;
  const facts = [
    ['Inputs that succeeded', sumOf(text, 'attestream_input_runs_total', 'end="succeeded"').toLocaleString('en')],
    ['Inputs that failed', sumOf(text, 'attestream_input_runs_total', 'end="failed"').toLocaleString('en')],
    ['Bytes of outputs', sizeText(sumOf(text, 'attestream_output_bytes_total'))],
    ['Longest wait now', durationText(sumOf(text, 'attestream_queue_oldest_seconds') * 1000)],
    ['Callbacks that wait', sumOf(text, 'attestream_callbacks_waiting').toLocaleString('en')],
  ];
  return html`<dl class="facts">${facts.map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}</dl>`;
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
