import { useSignal } from '@preact/signals';
import { html } from './html.js';
import { OPERATIONS } from './operations.js';
import { outputAddress } from './outputs.js';
import { linkTo } from './router.js';
import { StateMark } from './state-mark.js';

/** @typedef {import('./api.js').ResultEntry} ResultEntry */
/** @typedef {import('../src/contract/job.ts').OperationName} OperationName */

/** Inputs that are shown at first, and that are added by the button: a job may have 10,000. */
const STEP = 50;

/**
 * Shows what became of each input, failed ones first.
 * @param {{ jobId: string, operation: OperationName, entries: readonly ResultEntry[], isSingle: boolean }} props
 */
export function InputResults({ jobId, operation, entries, isSingle }) {
  const limit = useSignal(STEP);
  const sorted = [...entries].sort(failedFirst);
  const hidden = sorted.length - limit.value;
  return html`
    ${!isSingle && html`<p class="muted">${countsText(entries)}</p>`}
    ${sorted.slice(0, limit.value).map((entry) => html`<${InputResult} key=${entry.input_index} jobId=${jobId} operation=${operation} entry=${entry} />`)}
    ${
      hidden > 0 &&
      html`<p><button type="button" class="secondary outline" onClick=${() => {
        limit.value += STEP * 4;
      }}>Show more (${hidden.toLocaleString('en')})</button></p>`
    }
  `;
}

/** @param {readonly ResultEntry[]} entries */
function countsText(entries) {
  const groups = Map.groupBy(entries, ({ status }) => status);
  return /** @type {const} */ (['failed', 'cancelled', 'succeeded'])
    .filter((status) => groups.has(status))
    .map((status) => `${groups.get(status)?.length.toLocaleString('en')} ${status}`)
    .join(', ');
}

/** @param {ResultEntry} a @param {ResultEntry} b */
function failedFirst(a, b) {
  return Number(a.status === 'succeeded') - Number(b.status === 'succeeded') || a.input_index - b.input_index;
}

/** @param {{ jobId: string, operation: OperationName, entry: ResultEntry }} props */
function InputResult({ jobId, operation, entry }) {
  const { input_index: index, input_name: name, status, error, error_details: details } = entry;
  return html`<article class="input">
    <header><span class="state ${status}">${status}</span> <strong class="path">${name ?? `Input ${index}`}</strong> ${name && html`<span class="muted">Input ${index}</span>`}</header>
    ${entry.verification && html`<p><${StateMark} state=${entry.verification.state} /></p>`}
    ${error && html`<p>${error}</p>`}
    ${details?.reason && html`<p><code>${details.reason}</code> · <a href=${linkTo(['errors', details.reason])} aria-label="Open documentation of ${details.reason}">Open documentation</a></p>`}
    <${Outputs} jobId=${jobId} operation=${operation} entry=${entry} />
    <${Warnings} entry=${entry} />
  </article>`;
}

/**
 * Names the outputs of an input, and links what can be done with each: a file can be downloaded, and media can be played. A
 * sidecar that was delivered alone is the output itself.
 * @param {{ jobId: string, operation: OperationName, entry: ResultEntry }} props
 */
function Outputs({ jobId, operation, entry: { input_index: index, output_path: output, sidecar_path: sidecar } }) {
  const place = { job: jobId, index: String(index) };
  const kind = OPERATIONS[operation]?.output;
  const download = (/** @type {string} */ path) =>
    html`<a href=${outputAddress(jobId, index, nameOf(path))} aria-label="Download ${nameOf(path)}" download>Download</a>`;
  return html`
    ${
      output &&
      output !== sidecar &&
      html`<p><code class="path">${output}</code></p>
        <p>
          ${kind !== 'report' && html`<a href=${linkTo(['play'], place)}>Play</a> · <a href=${linkTo(['inspect'], place)}>Inspect</a>`}
          ${kind === 'media' && ' · '}
          ${kind !== 'publication' && download(output)}
        </p>`
    }
    ${sidecar && html`<p><code class="path">${sidecar}</code></p><p>${download(sidecar)}</p>`}
  `;
}

/** @param {{ entry: ResultEntry }} props */
function Warnings({ entry: { warnings = [], warning_details: details = [] } }) {
  if (warnings.length === 0) return null;
  return html`<details><summary>${warnings.length === 1 ? 'One warning' : `${warnings.length} warnings`}</summary><ul>
    ${warnings.map((text, index) => {
      const reason = details[index]?.reason;
      return html`<li>${text} ${reason && html`<a href=${linkTo(['errors', reason])}><code>${reason}</code></a>`}</li>`;
    })}
  </ul></details>`;
}

/** @param {string} path */
function nameOf(path) {
  return path.split('/').at(-1) ?? '';
}
