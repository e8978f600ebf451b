import { useEffect, useRef } from 'preact/hooks';
import { FailureGroup, groupName, groupsOf, inputName } from './failure-groups.js';
import { html } from './html.js';
import { InputResult, OutputLinks } from './input-results.js';
import { linkTo, route } from './router.js';
import { StateMark } from './state-mark.js';
import { VirtualRows } from './virtual-rows.js';

/** @typedef {import('./api.js').Job} Job */
/** @typedef {import('./api.js').ResultEntry} ResultEntry */
/** @typedef {{ status?: string, group?: string, text?: string, input?: string }} Filter */

/** Statuses of inputs that have ended, in the order in which they matter. */
const STATUSES = /** @type {const} */ (['failed', 'cancelled', 'succeeded']);

/**
 * Shows the inputs of a batch that have ended: failures by reason, and all others as rows. The filter stands in the address, and
 * so does the input that is looked at.
 * @param {{ job: Job, entries: readonly ResultEntry[], onRetry: ((choice: object) => void) | null }} props
 */
export function InputTable({ job, entries, onRetry }) {
  /** @type {Filter} */
  const filter = Object.fromEntries(route.value.query);
  const { group = '', text = '', input = '' } = filter;
  const linkOf = (/** @type {Filter} */ changed) => linkTo(['jobs', job.job_id], { ...filter, ...changed });
  const isFlat = group !== '' || text !== '';
  const chosen = entries.filter((entry) => isChosen(entry, filter));
  const groups = text === '' ? groupsOf(chosen) : [];
  const rows = isFlat ? chosen : chosen.filter((entry) => entry.status === 'succeeded');
  const opened = entries.find((entry) => String(entry.input_index) === input);
  return html`
    <${Filters} counts=${job.counts} filter=${filter} linkOf=${linkOf} />
    ${groups.length > 0 && html`<ul class="groups">${groups.map((one) => html`<${FailureGroup} key=${one.name} group=${one} allLink=${isFlat ? null : linkOf({ group: one.name })} onRetry=${onRetry} />`)}</ul>`}
    ${rows.length > 0 && html`<${Rows} job=${job} entries=${rows.sort((a, b) => a.input_index - b.input_index)} linkOf=${linkOf} />`}
    ${chosen.length === 0 && html`<p>No input that has ended is like this.</p>`}
    ${opened !== undefined && html`<${InputDialog} key=${input} job=${job} entry=${opened} closedLink=${linkOf({ input: '' })} />`}
  `;
}

/** @param {ResultEntry} entry @param {Filter} filter */
function isChosen(entry, { status = '', group = '', text = '' }) {
  return (
    (status === '' || entry.status === status) &&
    (group === '' || groupName(entry) === group) &&
    `${inputName(entry)} ${entry.error ?? ''}`.toLowerCase().includes(text.toLowerCase())
  );
}

/** @param {{ counts: Job['counts'], filter: Filter, linkOf: (changed: Filter) => string }} props */
function Filters({ counts, filter: { status = '', group = '', text = '' }, linkOf }) {
  const choices = [
    ['', 'all'],
    ...STATUSES.filter((each) => counts[each] > 0).map((each) => [
      each,
      `${counts[each].toLocaleString('en')} ${each}`,
    ]),
  ];
  const find = (/** @type {Event} */ event) => {
    // Letters that are typed are no steps to go back to.
    location.replace(linkOf({ text: /** @type {HTMLInputElement} */ (event.target).value }));
  };
  return html`<form class="filter" aria-label="Filter of inputs" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    ${choices.map(([name = '', words]) => html`<a role="button" class=${name === status ? '' : 'outline secondary'} aria-current=${name === status ? 'true' : undefined} href=${linkOf({ status: name, group: '' })}>${words}</a>`)}
    ${group !== '' && html`<a role="button" class="outline" href=${linkOf({ group: '' })} aria-label="Show all groups, not only ${group}">${group} ×</a>`}
    <input aria-label="Find in names and messages" type="search" autocomplete="off" placeholder="name or message" value=${text} onInput=${find} />
  </form>`;
}

/** @param {{ job: Job, entries: readonly ResultEntry[], linkOf: (changed: Filter) => string }} props */
function Rows({ job, entries, linkOf }) {
  const byIndex = new Map(entries.map((entry) => [String(entry.input_index), entry]));
  const headings = ['State', 'Input', 'Outcome', 'Output'];
  const row = (/** @type {string} */ id, /** @type {number} */ index) =>
    html`<${Row} key=${id} job=${job} entry=${byIndex.get(id)} index=${index} link=${linkOf({ input: id })} />`;
  return html`<table role="table" class="rows ended" aria-rowcount=${entries.length + 1}>
    <thead role="rowgroup"><tr role="row" aria-rowindex="1">${headings.map((text) => html`<th role="columnheader" scope="col">${text}</th>`)}</tr></thead>
    <${VirtualRows} ids=${[...byIndex.keys()]} row=${row} />
  </table>`;
}

/** @param {{ job: Job, entry: ResultEntry, index: number, link: string }} props */
function Row({ job, entry, index, link }) {
  const { status, input_index: inputIndex, error, output_path: output, verification, warnings = [] } = entry;
  const links = html`<${OutputLinks} jobId=${job.job_id} operation=${job.operation} entry=${entry} />`;
  return html`<tr role="row" aria-rowindex=${index + 2}>
    <td role="cell"><span class="state ${status}">${status}</span></td>
    <td role="cell"><a href=${link} title=${inputName(entry)}>${inputName(entry)}</a><small class="muted">Input ${inputIndex}${warnings.length > 0 && `, ${warnings.length === 1 ? 'one warning' : `${warnings.length} warnings`}`}</small></td>
    ${
      error
        ? html`<td role="cell" aria-colspan="2" title=${error}>${error}</td>`
        : html`<td role="cell" title=${output}>${verification ? html`<${StateMark} state=${verification.state} />` : output}</td><td role="cell">${links}</td>`
    }
  </tr>`;
}

/** Shows an input over the rows, which stay where they are. @param {{ job: Job, entry: ResultEntry, closedLink: string }} props */
function InputDialog({ job, entry, closedLink }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => dialog.current?.showModal(), []);
  const onClose = () => {
    location.hash = closedLink;
  };
  return html`<dialog ref=${dialog} aria-label=${inputName(entry)} onClose=${onClose}>
    <div class="dialog-input">
      <${InputResult} jobId=${job.job_id} operation=${job.operation} entry=${entry} />
      <button type="button" class="secondary small" onClick=${() => dialog.current?.close()}>Close</button>
    </div>
  </dialog>`;
}
