import { html } from './html.js';
import { WORDS } from './provenance.js';

/** @typedef {import('./publication-player.js').Rendition} Rendition */
/** @typedef {import('./publication-player.js').Fragment} Fragment */

/** Up to this number every fragment is drawn with its outline; of more, those of one state that follow each other are drawn as one. */
const MAX_OUTLINED = 400;

/**
 * Draws a rendition as its fragments: outlined before they are verified, then filled in the colour of the verdict.
 * @param {{ rendition: Rendition, time: number }} props
 */
export function Timeline({ rendition: { name, fragments }, time }) {
  const end = fragments.reduce((latest, { start, duration }) => Math.max(latest, start + duration), 0);
  const verified = fragments.filter(({ verdict }) => verdict?.state === 'valid' || verdict?.state === 'trusted').length;
  const failed = fragments.filter(({ verdict }) => verdict !== null && !['valid', 'trusted'].includes(verdict.state));
  const summary = `${verified} of ${fragments.length} fragments verified`;
  const x = (/** @type {number} */ seconds) => (end === 0 ? 0 : (seconds / end) * 1000);
  return html`<figure class="timeline">
    <figcaption>${name}: ${summary}${failed.length > 0 && html`, <strong class="bad">${failed.length} not intact</strong>`}</figcaption>
    <svg viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label="${name}: ${summary}, ${failed.length} not intact">
      ${runsOf(fragments).map(
        ({ first, last }) =>
          html`<rect key=${first.number} x=${x(first.start)} width=${x(last.start + last.duration - first.start)} y="2" height="20" class=${stateOf(first)}><title>${first === last ? titleOf(first) : `Fragments ${first.number} to ${last.number}: ${wordsOf(first)}`}</title></rect>`,
      )}
      <line x1=${x(time)} x2=${x(time)} y1="0" y2="24" />
    </svg>
    ${failed.length > 0 && html`<ul>${failed.slice(0, 20).map((fragment) => html`<li>${titleOf(fragment)}</li>`)}</ul>`}
  </figure>`;
}

/**
 * Returns what is drawn as one: each fragment, or of many those of one state that follow each other.
 * @param {readonly Fragment[]} fragments
 * @returns {{ first: Fragment, last: Fragment }[]}
 */
function runsOf(fragments) {
  if (fragments.length <= MAX_OUTLINED) return fragments.map((fragment) => ({ first: fragment, last: fragment }));
  /** @type {{ first: Fragment, last: Fragment }[]} */
  const runs = [];
  for (const fragment of fragments) {
    const run = runs.at(-1);
    if (run !== undefined && stateOf(run.first) === stateOf(fragment)) run.last = fragment;
    else runs.push({ first: fragment, last: fragment });
  }
  return runs;
}

/** @param {Fragment} fragment */
function stateOf({ verdict }) {
  return verdict?.state ?? 'unchecked';
}

/** @param {Fragment} fragment */
function wordsOf({ verdict }) {
  return verdict === null ? 'not verified yet' : WORDS[verdict.state];
}

/** @param {Fragment} fragment */
function titleOf(fragment) {
  const { number, start, duration, sizeBytes, verdict } = fragment;
  const size = sizeBytes === 0 ? '' : `, ${sizeBytes} bytes`;
  const reason = verdict?.failures[0]?.code ?? verdict?.problem ?? '';
  return `Fragment ${number}, ${start.toFixed(1)} s to ${(start + duration).toFixed(1)} s${size}: ${wordsOf(fragment)}${reason && ` (${reason})`}`;
}
