import { html } from './html.js';
import { Reason } from './reason.js';

/** @typedef {import('./api.js').ResultEntry} ResultEntry */

/**
 * Inputs that ended without an output for the same reason. The name is the reason, or a status where there is none.
 * @typedef {{ name: string, reason: string | undefined, entries: readonly ResultEntry[] }} Group
 */

/** Names that a group shows; all others are one click away. */
const FIRST_NAMES = 5;

/** Returns the name of the group of an input that did not succeed. @param {ResultEntry} entry */
export function groupName({ status, error_details: details }) {
  return details?.reason ?? status;
}

/** Groups inputs that did not succeed, the largest group first. @param {readonly ResultEntry[]} entries @returns {Group[]} */
export function groupsOf(entries) {
  const unsuccessful = entries.filter(({ status }) => status !== 'succeeded');
  return [...Map.groupBy(unsuccessful, groupName)]
    .map(([name, members]) => ({ name, reason: members[0]?.error_details?.reason, entries: members }))
    .sort((a, b) => b.entries.length - a.entries.length);
}

/** Returns the name of an input; older releases recorded none. @param {ResultEntry} entry */
export function inputName({ input_index: index, input_name: name }) {
  return name ?? `Input ${index}`;
}

/**
 * Returns the sentence of a group: the words that all its messages have in common, with "…" for those that differ.
 * @param {Group} group
 */
export function sentenceOf({ name, entries }) {
  const [first = [], ...others] = entries.map(({ error = name }) => error.split(/("[^"]*"|\s+)/));
  if (others.some(({ length }) => length !== first.length)) return first.join('');
  return first.map((word, index) => (others.every((other) => other[index] === word) ? word : '…')).join('');
}

/**
 * Shows a group: how many inputs, the sentence once, the first names, and what can be done.
 * @param {{ group: Group, allLink: string | null, onRetry: ((choice: object) => void) | null }} props `onRetry` is null while the job runs
 */
export function FailureGroup({ group, allLink, onRetry }) {
  const { name, reason, entries } = group;
  const count = entries.length.toLocaleString('en');
  const retryText = entries.length === 1 ? 'Retry this one' : `Retry these ${count}`;
  return html`<li class="group">
    <p><strong class="count">${count} ×</strong> ${sentenceOf(group)}</p>
    ${reason && html`<${Reason} reason=${reason} />`}
    ${allLink !== null && html`<p class="muted names"><span>${entries.slice(0, FIRST_NAMES).map(inputName).join(', ')}${entries.length > FIRST_NAMES && ', …'}</span> <a href=${allLink} aria-label="Show all of ${name}">${entries.length === 1 ? 'Show' : 'Show all'}</a></p>`}
    ${onRetry !== null && html`<button type="button" class="secondary outline small" aria-label="${retryText}: ${name}" onClick=${() => onRetry(choiceOf(group))}>${retryText}</button>`}
  </li>`;
}

/** Returns the body of a request that retries a group. @param {Group} group */
function choiceOf({ reason, entries }) {
  if (reason !== undefined) return { reasons: [reason] };
  return { statuses: [entries[0]?.status], input_indexes: entries.map(({ input_index: index }) => index) };
}
