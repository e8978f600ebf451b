import { html } from './html.js';

/** @typedef {import('../src/contract/verification.ts').VerificationState} State */

/** States in a few words. The trust in the signer stands beside it. */
export const WORDS = {
  trusted: 'Intact, signer on a trust list',
  valid: 'Intact',
  invalid: 'Not intact',
  none: 'No provenance',
};

const SHIELD = 'M8 1 2 3.3v4.2c0 3.7 2.5 6.2 6 7.5 3.5-1.3 6-3.8 6-7.5V3.3z';
/** Drawings of the states: a shield with a check, a check, a broken shield, a dash. */
const SHAPES = {
  trusted: [SHIELD, 'm5.2 7.8 2 2 3.6-4'],
  valid: ['m2.5 8.5 3.5 3.5 7.5-8'],
  invalid: [SHIELD, 'M8.5 1 6.5 6l3.2 2.2L7.5 15'],
  none: ['M3 8h10'],
};

/**
 * Marks an asset with its state: a sign, a word and a colour.
 * @param {{ state: State }} props
 */
export function StateMark({ state }) {
  return html`<span class="state ${state}"><${StateIcon} state=${state} />${WORDS[state]}</span>`;
}

/** @param {{ state: State }} props */
function StateIcon({ state }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">${SHAPES[state].map((path) => html`<path d=${path} />`)}</svg>`;
}
