import { html } from './html.js';
import { OPERATIONS } from './operations.js';
import { outputAddress } from './outputs.js';
import { Reason } from './reason.js';
import { linkTo } from './router.js';
import { StateMark } from './state-mark.js';

/** @typedef {import('./api.js').ResultEntry} ResultEntry */
/** @typedef {import('../src/contract/job.ts').OperationName} OperationName */

/**
 * Shows what became of each of a few inputs, failed ones first.
 * @param {{ jobId: string, operation: OperationName, entries: readonly ResultEntry[] }} props
 */
export function InputResults({ jobId, operation, entries }) {
  const sorted = [...entries].sort(failedFirst);
  return sorted.map(
    (entry) => html`<${InputResult} key=${entry.input_index} jobId=${jobId} operation=${operation} entry=${entry} />`,
  );
}

/** @param {ResultEntry} a @param {ResultEntry} b */
function failedFirst(a, b) {
  return Number(a.status === 'succeeded') - Number(b.status === 'succeeded') || a.input_index - b.input_index;
}

/**
 * Shows all that is known of an input that has ended.
 * @param {{ jobId: string, operation: OperationName, entry: ResultEntry }} props
 */
export function InputResult({ jobId, operation, entry }) {
  const { input_index: index, input_name: name, status, error, error_details: details } = entry;
  return html`<article class="input">
    <header><span class="state ${status}">${status}</span> <strong class="path">${name ?? `Input ${index}`}</strong> ${name && html`<span class="muted">Input ${index}</span>`}</header>
    ${entry.verification && html`<p><${StateMark} state=${entry.verification.state} /></p>`}
    ${error && html`<p>${error}</p>`}
    ${details?.reason && html`<${Reason} reason=${details.reason} />`}
    <${Outputs} jobId=${jobId} operation=${operation} entry=${entry} />
    <${Warnings} entry=${entry} />
  </article>`;
}

/** Names the outputs of an input, and links what can be done with them. @param {{ jobId: string, operation: OperationName, entry: ResultEntry }} props */
function Outputs({ jobId, operation, entry }) {
  const { output_path: output, sidecar_path: sidecar } = entry;
  return html`
    ${output && output !== sidecar && html`<p><code class="path">${output}</code></p>`}
    ${sidecar && html`<p><code class="path">${sidecar}</code></p>`}
    ${(output || sidecar) && html`<p><${OutputLinks} jobId=${jobId} operation=${operation} entry=${entry} /></p>`}
  `;
}

/**
 * Links what can be done with the outputs of an input: a file can be downloaded, and media can be played. A sidecar that was
 * delivered alone is the output itself.
 * @param {{ jobId: string, operation: OperationName, entry: ResultEntry }} props
 */
export function OutputLinks({
  jobId,
  operation,
  entry: { input_index: index, output_path: output, sidecar_path: sidecar },
}) {
  const place = { job: jobId, index: String(index) };
  const kind = OPERATIONS[operation]?.output;
  const download = (/** @type {string} */ path, /** @type {string} */ text) =>
    html`<a href=${outputAddress(jobId, index, nameOf(path))} aria-label="Download ${nameOf(path)}" download>${text}</a>`;
  const isMedia = output && output !== sidecar && kind !== 'report';
  const links = [
    isMedia && html`<a href=${linkTo(['play'], place)}>Play</a>`,
    isMedia && html`<a href=${linkTo(['inspect'], place)}>Inspect</a>`,
    output && output !== sidecar && kind !== 'publication' && download(output, 'Download'),
    sidecar && download(sidecar, output === sidecar ? 'Download' : 'Sidecar'),
  ].filter(Boolean);
  return links.map((link, index) => [index > 0 && ' · ', link]);
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
