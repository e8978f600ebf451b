import { useSignal } from '@preact/signals';
import { html } from './html.js';
import { outputAddress } from './outputs.js';
import { linkTo } from './router.js';
import { StateMark } from './state-mark.js';

/** @typedef {import('./api.js').ResultEntry} ResultEntry */

/** Inputs that are shown at first, and that are added by the button: a job may have 10,000. */
const STEP = 50;

/**
 * Shows what became of each input, failed ones first.
 * @param {{ jobId: string, entries: readonly ResultEntry[], isSingle: boolean }} props
 */
export function InputResults({ jobId, entries, isSingle }) {
  const limit = useSignal(STEP);
  const sorted = [...entries].sort(failedFirst);
  const hidden = sorted.length - limit.value;
  return html`
    ${!isSingle && html`<p class="muted">${countsText(entries)}</p>`}
    ${sorted.slice(0, limit.value).map((entry) => html`<${InputResult} key=${entry.input_index} jobId=${jobId} entry=${entry} />`)}
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

/** @param {{ jobId: string, entry: ResultEntry }} props */
function InputResult({ jobId, entry }) {
  const { input_index: index, input_name: name, status, output_path: output, error, error_details: details } = entry;
  const place = { job: jobId, index: String(index) };
  return html`<article class="input">
    <header><span class="state ${status}">${status}</span> <strong class="path">${name ?? `Input ${index}`}</strong> ${name && html`<span class="muted">Input ${index}</span>`}</header>
    ${entry.verification && html`<p><${StateMark} state=${entry.verification.state} /></p>`}
    ${error && html`<p>${error}</p>`}
    ${details?.reason && html`<p><code>${details.reason}</code> · <a href=${linkTo(['errors', details.reason])} aria-label="Open documentation of ${details.reason}">Open documentation</a></p>`}
    ${output && html`<p><code class="path">${output}</code></p>`}
    ${
      output &&
      html`<p>
      <a href=${linkTo(['play'], place)}>Play</a>
      ${' · '}<a href=${linkTo(['inspect'], place)}>Inspect</a>
      ${isFile(output) && html` · <a href=${outputAddress(jobId, index, nameOf(output))} download>Download</a>`}
    </p>`
    }
    <${Warnings} entry=${entry} />
  </article>`;
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

/**
 * Tells whether an output is a file: a publication is a folder, whose name rarely ends like that of a media file.
 * @param {string} path
 */
function isFile(path) {
  return /\.(mp4|m4v|mov|qt|3gp|3g2|m4a|mp3|wav|flac|avi)$/i.test(path);
}
