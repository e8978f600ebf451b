import { useSignal } from '@preact/signals';
import { html } from './html.js';
import { FoldedText, More } from './long-values.js';
import { StateMark } from './state-mark.js';

/** @typedef {import('../src/contract/verification.ts').VerifiedManifest} Manifest */

/** @type {ReadonlyMap<string, string>} */
const ROLES = new Map(
  Object.entries({
    parentOf: 'the version before',
    componentOf: 'a part of it',
    inputTo: 'used to make it',
  }),
);

/**
 * Shows what a manifest's asset was made from. A branch is made when it is opened: chains are long, and refer to the same
 * manifests many times.
 * @param {{ manifests: readonly Manifest[], manifest: Manifest, path: readonly string[] }} props
 */
export function IngredientTree({ manifests, manifest: { ingredients, omitted }, path }) {
  const row = (/** @type {Manifest['ingredients'][number]} */ ingredient) =>
    html`<${Ingredient} manifests=${manifests} ingredient=${ingredient} path=${path} />`;
  return html`<ul class="tree"><${More} items=${ingredients} row=${row} omitted=${omitted?.ingredients} /></ul>`;
}

/** @param {{ manifests: readonly Manifest[], ingredient: Manifest['ingredients'][number], path: readonly string[] }} props */
function Ingredient({ manifests, ingredient, path }) {
  const { title, relationship, state, manifest: label, failures = [] } = ingredient;
  const own = manifests.find((manifest) => manifest.label === label);
  const isRepeated = label !== undefined && path.includes(label);
  const isOpen = useSignal(path.length === 1 && own !== undefined && own.ingredients.length < 10);
  const line = html`<${FoldedText} text=${title ?? 'Without a title'} /> <${StateMark} state=${state} /> <span class="muted">${ROLES.get(relationship) ?? relationship}</span>`;
  const reasons = failures.length > 0 && html` <code>${failures.join(', ')}</code>`;
  if (own === undefined || isRepeated) return html`<li>${line}${reasons}</li>`;
  const { signer, time_stamp: stamp, actions } = own;
  return html`<li><details open=${isOpen.value} onToggle=${(/** @type {any} */ event) => {
    isOpen.value = event.currentTarget.open;
  }}>
    <summary>${line}${reasons}</summary>
    ${
      isOpen.value &&
      html`<p class="muted">Signed by ${signer?.organization ?? signer?.name ?? 'a signer without a name'}${signer?.development && ' (development identity)'}${stamp && `, ${stamp.time}`}${
        actions.length > 0 &&
        `. ${actions
          .slice(0, 5)
          .map(({ description }) => description)
          .join(', ')}`
      }</p>
      ${own.ingredients.length > 0 && html`<${IngredientTree} manifests=${manifests} manifest=${own} path=${[...path, own.label]} />`}`
    }
  </details></li>`;
}
