import { html } from './html.js';
import { IngredientTree } from './ingredient-tree.js';
import { CopyButton, FoldedText, More, RawJson } from './long-values.js';
import { PublicationReport } from './publication-report.js';
import { StateMark } from './state-mark.js';
import { exactTime } from './text.js';

/**
 * @typedef {import('./reader.js').Reading} Reading
 * @typedef {import('../src/contract/verification.ts').Verification} Verification
 * @typedef {import('../src/contract/verification.ts').VerifiedManifest} Manifest
 */

/** Failures that only say that nobody here knows a signer. */
const UNTRUSTED = ['signingCredential.untrusted', 'cawg.x509.credential.untrusted'];

/**
 * Shows what was found: state and summary; signer, time and actions; then, each below a click, ingredients, assertions, checks
 * and the raw report.
 * @param {{ reading: Reading }} props
 */
export function Provenance({ reading: { verification, raw } }) {
  const { state, summary, codes, manifests, publication, omitted } = verification;
  const [manifest] = manifests;
  const failures = codes.filter(
    ({ code, kind, ingredient }) => kind === 'failure' && ingredient !== true && !UNTRUSTED.includes(code),
  );
  return html`
    <article class="card">
      <p class="verdict"><${StateMark} state=${state} /> <span>${summary}</span></p>
      ${failures.length > 0 && html`<${Codes} codes=${failures} />`}
      ${publication && html`<${PublicationReport} publication=${publication} />`}
      ${manifest && html`<${Summary} verification=${verification} manifest=${manifest} />`}
      ${manifest && manifest.actions.length > 0 && html`<h3>What was done</h3><${Actions} manifest=${manifest} />`}
      ${manifest && manifest.ingredients.length > 0 && html`<h3>Made from</h3><${IngredientTree} manifests=${manifests} manifest=${manifest} path=${[manifest.label]} />`}
      ${(omitted?.manifests ?? 0) > 0 && html`<p class="muted">${omitted?.manifests} more manifests are in the report.</p>`}
      ${manifest && manifest.assertions.length > 0 && html`<${Assertions} manifest=${manifest} />`}
      ${
        codes.length > 0 &&
        html`<details><summary>What was checked (${codes.length})</summary><${Codes} codes=${codes} /></details>`
      }
      ${raw && html`<${RawJson} blob=${raw} name="${manifest?.title ?? 'provenance'}.json" />`}
    </article>
  `;
}

/** @param {{ codes: Verification['codes'] }} props */
function Codes({ codes }) {
  return html`<ul class="codes"><${More} items=${codes} row=${codeRow} /></ul>`;
}

/** @param {Verification['codes'][number]} code */
function codeRow({ code, kind, explanation, count, ingredient }) {
  return html`<li class=${kind}>${explanation} <code>${code}</code>${count > 1 && ` ${count} times`}${ingredient && html` <span class="muted">of an ingredient</span>`}</li>`;
}

/** @param {{ verification: Verification, manifest: Manifest }} props */
function Summary({ verification, manifest }) {
  const { state, trust_list: list, manifest_from: from } = verification;
  const { signer, time_stamp: stamp, generator, title, label, identity_assertions: identities = [] } = manifest;
  return html`<dl class="facts">
    ${identities.map((identity) => html`<dt>${identityHeading(identity)}</dt><dd><${Identity} identity=${identity} /></dd>`)}
    <dt>Signed by</dt><dd><${Signer} signer=${signer} /></dd>
    ${state !== 'invalid' && html`<dt>Trust list</dt><dd>${list ?? 'On none that this service knows'}</dd>`}
    <dt>Signed at</dt><dd>${stamp ? html`<time datetime=${stamp.time}>${exactTime(stamp.time)}</time><${Authority} stamp=${stamp} />` : 'No authority confirms a time'}</dd>
    <${Revocation} verification=${verification} manifest=${manifest} />
    ${title && html`<dt>Title</dt><dd><${FoldedText} text=${title} /></dd>`}
    ${generator && html`<dt>Made with</dt><dd><${FoldedText} text=${generator} /></dd>`}
    ${from === 'sidecar' && html`<dt>Manifest</dt><dd>In a file of its own, next to the media</dd>`}
    <dt>Identifier</dt><dd><code>${label}</code> <${CopyButton} text=${label} /></dd>
  </dl>`;
}

/** @param {{ signer: Manifest['signer'] }} props */
function Signer({ signer }) {
  const { name, organization, development } = signer ?? {};
  const known = [organization, name].filter((part) => part !== undefined);
  return html`<${FoldedText} text=${known.join(', ') || 'A signer without a name'} />${development && html` <span class="state bad">development identity</span>`}`;
}

/** What is said of an identity that nobody has to believe. */
const IDENTITY_STATES = {
  trusted: '',
  valid: 'on no list of publishers that this service knows',
  invalid: 'does not verify',
  unverified: 'not verified',
};

/** @param {NonNullable<Manifest['identity_assertions']>[number]} identity */
function identityHeading({ state, roles }) {
  if (state !== 'trusted') return 'Identity';
  return roles.includes('cawg.publisher') ? 'Published by' : 'Vouched for by';
}

/** @param {{ identity: NonNullable<Manifest['identity_assertions']>[number] }} props */
function Identity({ identity: { state, name, organization, issuer, trust_list: list } }) {
  const known = [organization, name].filter((part) => part !== undefined);
  const stated = issuer === undefined ? 'Somebody without a name' : `Somebody, as ${issuer} states`;
  const words = state === 'trusted' ? `on ${list ?? 'a list of publishers'}` : IDENTITY_STATES[state];
  return html`<${FoldedText} text=${known.join(', ') || stated} /> <span class=${state === 'invalid' ? 'state bad' : 'muted'}>${words}</span>`;
}

/** @param {{ stamp: NonNullable<Manifest['time_stamp']> }} props */
function Authority({ stamp: { authority, trusted } }) {
  return html`, as ${authority ?? 'an authority'} states${!trusted && ' (on no trust list that this service knows)'}`;
}

/** @param {{ verification: Verification, manifest: Manifest }} props */
function Revocation({ verification: { codes }, manifest: { revocation } }) {
  const { status, as_of: asOf, problem } = revocation ?? {};
  const own = codes.find(({ code, ingredient }) => code.startsWith('signingCredential.ocsp.') && ingredient !== true);
  const none =
    problem === undefined ? 'There is no revocation data.' : `The revocation data cannot be used: ${problem}.`;
  const told = own?.explanation ?? (status === 'none' ? none : undefined);
  return (
    told &&
    html`<dt>Revocation</dt><dd>${told}${asOf && html` (<time datetime=${asOf}>${exactTime(asOf)}</time>)`}</dd>`
  );
}

/** @param {{ manifest: Manifest }} props */
function Actions({ manifest: { actions, omitted } }) {
  return html`<ol><${More} items=${actions} row=${actionRow} omitted=${omitted?.actions} /></ol>`;
}

/** @param {Manifest['actions'][number]} action */
function actionRow({ action, description, when, software_agent: agent, digital_source_type: type }) {
  return html`<li title=${action}><${FoldedText} text=${description} />${when && html`, <time datetime=${when}>${exactTime(when)}</time>`}${agent && html`, with ${agent}`}${type && html` <span class="muted">(${type.split('/').at(-1)})</span>`}</li>`;
}

/** @param {{ manifest: Manifest }} props */
function Assertions({ manifest: { assertions, omitted } }) {
  return html`<details><summary>What the manifest states (${assertions.length + (omitted?.assertions ?? 0)} assertions)</summary>
    <ul class="codes"><${More} items=${assertions} row=${assertionRow} omitted=${omitted?.assertions} /></ul>
  </details>`;
}

/** @param {Manifest['assertions'][number]} assertion */
function assertionRow({ label, created, data }) {
  return html`<li><code>${label}</code> <span class="muted">${created ? 'stated by the signer' : 'taken over'}</span>${data !== undefined && html` <${FoldedText} text=${JSON.stringify(data)} />`}</li>`;
}
