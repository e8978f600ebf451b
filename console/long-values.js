import { useSignal } from '@preact/signals';
import { html } from './html.js';
import { sizeText } from './text.js';

/** Rows that a list shows at first, and adds by each press of its button. */
const ROWS = 20;
const MORE_ROWS = 100;
/** Characters of a text that are shown at first. */
const SHORT_TEXT = 160;
/** Bytes of a report that are shown; all of it can be copied and saved. */
const SHOWN_JSON_BYTES = 100_000;

/**
 * Shows the first rows of a list, and a button for more of them. `omitted` counts those that are not in the list.
 * @param {{ items: readonly any[], row: (item: any) => unknown, omitted?: number | undefined }} props
 */
export function More({ items, row, omitted = 0 }) {
  const shown = useSignal(ROWS);
  const left = items.length - shown.value;
  return html`${items.slice(0, shown.value).map(row)}
    ${
      left > 0 &&
      html`<li class="more"><button type="button" class="secondary outline small" onClick=${() => {
        shown.value += MORE_ROWS;
      }}>Show ${Math.min(left, MORE_ROWS)} more of ${left}</button></li>`
    }
    ${left <= 0 && omitted > 0 && html`<li class="muted">${omitted} more are in the report.</li>`}`;
}

/**
 * Shows a text, a long one folded.
 * @param {{ text: string }} props
 */
export function FoldedText({ text }) {
  const isOpen = useSignal(false);
  if (text.length <= SHORT_TEXT) return html`<span class="long">${text}</span>`;
  return html`<span class="long">${isOpen.value ? text : `${text.slice(0, SHORT_TEXT)}…`}</span> <button type="button" class="secondary outline small" aria-expanded=${isOpen.value} onClick=${() => {
    isOpen.value = !isOpen.value;
  }}>${isOpen.value ? 'Less' : 'All of it'}</button>`;
}

/**
 * Shows a report as text once it is opened: its beginning, where it is long.
 * @param {{ blob: Blob, name: string }} props
 */
export function RawJson({ blob, name }) {
  const text = useSignal('');
  /** @param {any} event */
  const load = async ({ target }) => {
    if (target.open && text.value === '') text.value = await blob.slice(0, SHOWN_JSON_BYTES).text();
  };
  const save = () => {
    const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  };
  return html`<details onToggle=${load}><summary>Everything that the reader reports (JSON, ${sizeText(blob.size)})</summary>
    <p class="filter"><${CopyButton} text=${() => blob.text()} /><button type="button" class="secondary outline small" onClick=${save}>Save</button></p>
    ${blob.size > SHOWN_JSON_BYTES && html`<p class="muted">The first ${sizeText(SHOWN_JSON_BYTES)}. All of it can be copied and saved.</p>`}
    <pre class="raw" tabindex="0"><code>${text.value}</code></pre>
  </details>`;
}

/**
 * Copies a text. Browsers allow that on localhost and over HTTPS.
 * @param {{ text: string | (() => Promise<string>) }} props
 */
export function CopyButton({ text }) {
  const label = useSignal('Copy');
  if (!isSecureContext) return null;
  const copy = async () => {
    const all = typeof text === 'string' ? text : await text();
    label.value = await navigator.clipboard.writeText(all).then(
      () => 'Copied',
      () => 'Not allowed',
    );
  };
  return html`<button type="button" class="secondary outline small" onClick=${copy}>${label.value}</button>`;
}
