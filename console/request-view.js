import { useSignal } from '@preact/signals';
import { addressOf } from './api.js';
import { useCurl } from './curl.js';
import { html } from './html.js';

/** Longer requests are shown in part: a batch may have 10,000 inputs. */
const MAX_SHOWN_LENGTH = 20_000;

/**
 * Shows a request as the API takes it, as JSON and as a command.
 * @param {{ path: string, request: object }} props
 */
export function RequestView({ path, request }) {
  const curlOf = useCurl();
  const json = JSON.stringify(request, null, 2);
  const shown =
    json.length > MAX_SHOWN_LENGTH
      ? `${json.slice(0, MAX_SHOWN_LENGTH)}\n… ${(json.length - MAX_SHOWN_LENGTH).toLocaleString('en')} more characters`
      : json;
  return html`
    <p><code>POST ${new URL(addressOf(path)).pathname}</code></p>
    <pre tabindex="0"><code>${shown}</code></pre>
    ${isSecureContext && html`<p class="filter"><${Copy} text=${curlOf(path, json)} label="Copy as curl" /><${Copy} text=${json} label="Copy JSON" /></p>`}
  `;
}

/** @param {{ text: string, label: string }} props */
function Copy({ text, label }) {
  const copied = useSignal(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(() => {
      copied.value = true;
      setTimeout(() => {
        copied.value = false;
      }, 2000);
    });
  return html`<button type="button" class="secondary outline small" onClick=${copy}>${copied.value ? 'Copied' : label}</button>`;
}
