import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addressOf } from './api.js';
import { html } from './html.js';
import { linkTo, route } from './router.js';

/** @typedef {{ group: string, reason: string, mark: string, message: string }} Row */

/** Marks of the tables, in sentences. @type {ReadonlyMap<string, string>} */
const MARKS = new Map(
  Object.entries({
    '↻': ' It may pass without anybody changing anything: the service tries the input again by itself.',
    '⏸': ' A part of the deployment is away: the input waits until it is back.',
    '(⏸)': ' The input waits where the service itself cannot use that part of the deployment either; else it fails.',
  }),
);

/** Shows the documentation of all errors and warnings, the one in the address first. */
export function ErrorsPage() {
  const [, reason] = route.value.parts;
  const rows = useSignal(/** @type {readonly Row[] | null} */ (null));
  const problem = useSignal('');
  useEffect(() => {
    fetch(addressOf('console/errors.md'))
      .then((response) => response.text())
      .then(
        (text) => {
          rows.value = rowsOf(text);
        },
        () => {
          problem.value = 'The list of errors could not be loaded. Check the connection and reload the page.';
        },
      );
  }, []);
  if (problem.value !== '')
    return html`<h1>Errors and warnings</h1><p class="notice" role="alert">${problem.value}</p>`;
  if (rows.value === null) return html`<h1>Errors and warnings</h1><p aria-busy="true">Loading …</p>`;
  const chosen = rows.value.find((row) => row.reason === reason);
  const groups = Map.groupBy(rows.value, ({ group }) => group);
  return html`
    <h1>Errors and warnings</h1>
    ${chosen !== undefined && html`<${Explanation} row=${chosen} />`}
    ${reason !== undefined && chosen === undefined && html`<p>There is no error or warning <code>${reason}</code> in this release.</p>`}
    ${[...groups].map(([group, members]) => html`<details open=${reason === undefined}><summary>${group}</summary><dl>${members.map((row) => html`<dt><a href=${linkTo(['errors', row.reason])}><code>${row.reason}</code></a></dt><dd>${row.message}</dd>`)}</dl></details>`)}
  `;
}

/** @param {{ row: Row }} props */
function Explanation({ row: { group, reason, mark, message } }) {
  return html`<article class="card">
    <h2><code>${reason}</code></h2>
    <p>${message}</p>
    <p class="muted">Words in ‹brackets› stand for what the message names.${MARKS.get(mark)}</p>
    <p class="muted">${group === 'Warnings' ? 'A warning: the output was made all the same.' : html`The code of the API is <code>${group}</code>.`}</p>
  </article>`;
}

/**
 * Reads the tables of docs/errors.md, which is written by a program.
 * @param {string} text
 * @returns {Row[]}
 */
function rowsOf(text) {
  let group = '';
  return text.split('\n').flatMap((line) => {
    if (line.startsWith('## ')) group = line.slice(3).replaceAll('`', '');
    const [, reason = '', mark = '', message = ''] = /^\| `(\w+)`(?: (\S+))? \| (.*) \|$/.exec(line) ?? [];
    return reason === '' ? [] : [{ group, reason, mark, message: message.replaceAll('\\|', '|') }];
  });
}
