import { html } from './html.js';
import { More } from './long-values.js';
import { clockText } from './text.js';

/**
 * @typedef {import('../src/contract/verification.ts').PublicationVerification} PublicationVerification
 * @typedef {import('../src/contract/verification.ts').PublicationDeviation} Deviation
 */

/** Deviations in plain words. */
const KINDS = {
  altered: 'Changed after signing',
  missing: 'Missing',
  added: 'Never signed for this publication',
  swapped: 'Another part stands in its place',
  reordered: 'Not in the order that was signed',
  unsigned: 'Without a manifest',
  unreadable: 'Cannot be read',
  ambiguous: 'Players may read it differently',
};

/**
 * Shows how a publication differs from what was signed: how much of it is intact, and the first deviations with where they are.
 * @param {{ publication: PublicationVerification }} props
 */
export function PublicationReport({ publication: { renditions, fragments, intact, first, omitted } }) {
  return html`
    <p>${intact.toLocaleString('en')} of ${fragments.toLocaleString('en')} fragments are intact, in ${renditions === 1 ? 'one rendition' : `${renditions} renditions`}.</p>
    ${first.length > 0 && html`<ol class="deviations"><${More} items=${first} row=${deviationRow} omitted=${omitted} /></ol>`}
  `;
}

/** @param {Deviation} deviation */
function deviationRow({
  kind,
  part,
  count,
  file,
  rendition,
  index,
  time_seconds: time,
  signed_as: origin,
  codes = [],
  line,
  problem,
}) {
  const what = count > 1 ? `${count} ${part}s` : part;
  return html`<li data-kind=${kind} data-index=${index} data-seconds=${time}>
    <strong class="bad">${KINDS[kind]}</strong>: ${time !== undefined && html`<span class="at">${clockText(time)}</span> `}${file ? html`<code class="path">${file}</code>` : what}
    <span class="muted">${index !== undefined && ` index ${index}`}${rendition !== undefined && rendition !== file && ` of ${rendition}`}${origin && `, signed as ${origin.index === undefined ? '' : `index ${origin.index} of `}${origin.rendition}`}</span>
    ${problem !== undefined && html`<span class="muted">${line !== undefined && ` line ${line}:`} ${problem}</span>`}
    ${codes.length > 0 && html` <code>${codes.join(', ')}</code>`}
  </li>`;
}
