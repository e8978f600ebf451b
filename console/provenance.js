import { html } from './html.js';
import { exactTime } from './text.js';

/** @typedef {import('./reader.js').Verdict} Verdict */
/** @typedef {import('./reader.js').State} State */

/** Actions in plain words (C2PA 2.2 §18.15). */
const ACTIONS = /** @type {Record<string, string>} */ ({
  'c2pa.created': 'Made',
  'c2pa.opened': 'Opened',
  'c2pa.placed': 'Combined with another file',
  'c2pa.edited': 'Edited',
  'c2pa.published': 'Published',
  'c2pa.transcoded': 'Converted to another coding',
  'c2pa.repackaged': 'Packed into another container',
  'c2pa.converted': 'Converted to another format',
  'c2pa.cropped': 'Cropped',
  'c2pa.resized': 'Resized',
  'c2pa.redacted': 'Information removed',
  'c2pa.translated': 'Translated',
  'c2pa.trimmed': 'Shortened',
  'c2pa.unknown': 'Something that is not known',
});

const MARKS = { trusted: '✓', valid: '✓', invalid: '✕', none: '–' };
/** States in a few words. */
export const WORDS = {
  trusted: 'Unchanged, signer trusted',
  valid: 'Unchanged since signing',
  invalid: 'Not intact',
  none: 'No provenance',
};

/**
 * Marks an asset with its state: a sign, a word and a colour.
 * @param {{ state: State }} props
 */
export function StateMark({ state }) {
  return html`<span class="state ${state}"><span aria-hidden="true">${MARKS[state]} </span>${WORDS[state]}</span>`;
}

/**
 * Tells what a verdict means in one sentence.
 * @param {Verdict} verdict
 */
export function sentenceOf({ state, failures, store, problem }) {
  const signer = signerOf(activeManifest(store));
  if (state === 'none') return 'No provenance information.';
  if (state === 'trusted') return `Unchanged. Signed by ${signer}, who is on the trust list of this reader.`;
  if (state === 'valid') return `Unchanged since signing. ${signer} is on no trust list that this reader knows.`;
  if (failures.some(({ code }) => code.endsWith('Hash.mismatch')))
    return 'Changed after signing: the bytes are not those that were signed.';
  if (failures.some(({ code }) => code.startsWith('claimSignature'))) return 'The signature does not verify.';
  return problem === '' ? 'The manifest is not valid.' : `The manifest cannot be read: ${problem}`;
}

/**
 * Shows what a manifest store says: summary, actions, ingredients, and the raw report.
 * @param {{ verdict: Verdict }} props
 */
export function Provenance({ verdict }) {
  const { store, failures, state } = verdict;
  const manifest = activeManifest(store);
  return html`
    <article class="card">
      <p><${StateMark} state=${state} /></p>
      <p>${sentenceOf(verdict)}</p>
      ${failures.length > 0 && html`<${Failures} failures=${failures} />`}
      ${manifest && html`<${Summary} manifest=${manifest} />`}
      ${manifest && html`<${Actions} manifest=${manifest} />`}
      ${(manifest?.ingredients?.length ?? 0) > 0 && html`<h3>Made from</h3><${Ingredients} store=${store} manifest=${manifest} depth=${0} />`}
      ${store && html`<details><summary>Everything that the reader reports (JSON)</summary><pre><code>${JSON.stringify(store, null, 2)}</code></pre></details>`}
    </article>
  `;
}

/** @param {{ failures: Verdict['failures'] }} props */
function Failures({ failures }) {
  return html`<ul>${failures.slice(0, 20).map(({ code, explanation }) => html`<li><code>${code}</code>${explanation && html` ${explanation}`}</li>`)}</ul>`;
}

/** @param {{ manifest: any }} props */
function Summary({ manifest }) {
  const { signature_info: signature = {}, claim_generator_info: [generator] = [] } = manifest;
  return html`<dl class="facts">
    <dt>Signed by</dt><dd>${signerOf(manifest)}${isDevelopment(signature) && html` <span class="state invalid">development identity</span>`}</dd>
    ${signature.issuer && html`<dt>Certificate from</dt><dd>${signature.issuer}</dd>`}
    <dt>Signed at</dt><dd>${signature.time ? exactTime(signature.time) : 'No time-stamp'}</dd>
    ${generator && html`<dt>Made with</dt><dd>${generator.name} ${generator.version ?? ''}</dd>`}
  </dl>`;
}

/** @param {{ manifest: any }} props */
function Actions({ manifest }) {
  const actions = /** @type {any[]} */ (manifest.assertions ?? [])
    .filter(({ label }) => /^c2pa\.actions/.test(label))
    .flatMap(({ data }) => data?.actions ?? []);
  if (actions.length === 0) return null;
  return html`<h3>What was done</h3><ol>${actions.slice(0, 200).map(
    ({ action, when, description, digitalSourceType }) => html`<li>
      ${ACTIONS[action] ?? action}${when && html`, <time datetime=${when}>${exactTime(when)}</time>`}
      ${description && html`: ${description}`}${digitalSourceType && html` <span class="muted">(${digitalSourceType.split('/').at(-1)})</span>`}
    </li>`,
  )}</ol>`;
}

/** Levels of the tree that are shown. Chains of several hundred versions are real. */
const MAX_DEPTH = 12;

/** @param {{ store: any, manifest: any, depth: number }} props */
function Ingredients({ store, manifest, depth }) {
  const ingredients = /** @type {any[]} */ (manifest.ingredients ?? []);
  return html`<ul class="tree">${ingredients.slice(0, 100).map((ingredient) => {
    const own = ingredient.active_manifest === undefined ? undefined : store.manifests?.[ingredient.active_manifest];
    const state = ingredientState(ingredient);
    const title = html`${ingredient.title ?? 'Untitled'} <${StateMark} state=${state} />`;
    const role = ingredient.relationship === 'parentOf' ? 'the version before' : 'a part of it';
    if (own === undefined || depth === MAX_DEPTH) return html`<li>${title} <span class="muted">${role}</span></li>`;
    return html`<li><details open=${depth === 0}><summary>${title} <span class="muted">${role}, signed by ${signerOf(own)}</span></summary><${Ingredients} store=${store} manifest=${own} depth=${depth + 1} /></details></li>`;
  })}</ul>
  ${ingredients.length > 100 && html`<p class="muted">and ${ingredients.length - 100} more</p>`}`;
}

/**
 * @param {any} ingredient
 * @returns {State}
 */
function ingredientState(ingredient) {
  if (ingredient.active_manifest === undefined) return 'none';
  const results = ingredient.validation_results?.activeManifest;
  const failures = results?.failure ?? ingredient.validation_status ?? [];
  const serious = failures.filter((/** @type {any} */ { code }) => !/untrusted$/.test(code));
  if (serious.length > 0) return 'invalid';
  return results?.success?.some((/** @type {any} */ { code }) => code === 'signingCredential.trusted')
    ? 'trusted'
    : 'valid';
}

/** @param {any} store */
function activeManifest(store) {
  return store?.manifests?.[store.active_manifest];
}

/** @param {any} manifest */
function signerOf(manifest) {
  const { common_name: name, issuer } = manifest?.signature_info ?? {};
  return name ?? issuer ?? 'an unknown signer';
}

/** @param {{ common_name?: string, issuer?: string }} signature */
function isDevelopment({ common_name: name = '', issuer = '' }) {
  return /development/i.test(`${name} ${issuer}`);
}
