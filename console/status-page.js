import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addressOf, call, loginNeeded } from './api.js';
import { html } from './html.js';
import { expiryOf, NeedsAttention } from './needs-attention.js';
import { NodeCharts } from './node-charts.js';
import { exactTime } from './text.js';

/** @typedef {import('../src/contract/service.ts').Readiness} Readiness */
/** @typedef {import('../src/contract/service.ts').ShownConfig} ShownConfig */

/** @param {{ readiness: import('@preact/signals').Signal<Readiness | null> }} props */
export function StatusPage({ readiness }) {
  const configuration = useSignal(/** @type {ShownConfig | null} */ (null));
  const problem = useSignal('');
  const login = loginNeeded.value;
  useEffect(() => {
    call('GET', 'v2/configuration').then(
      (found) => {
        configuration.value = found;
        problem.value = '';
      },
      (error) => {
        problem.value = error.message;
      },
    );
  }, [login]);
  const state = readiness.value;
  if (state === null) return html`<h1 aria-busy="true">Status</h1>`;
  return html`
    <h1>Status <span class="state ${state.ready ? 'good' : 'bad'}">${state.ready ? 'ready' : 'not ready'}</span></h1>
    <${NeedsAttention} state=${state} />
    <${Checks} state=${state} />
    <h2>Queue, rate, disks and nodes</h2>
    <${NodeCharts} />
    <h2>Configuration in force</h2>
    ${problem.value !== '' && html`<p>${problem.value}</p>`}
    ${configuration.value !== null && html`<${Settings} configuration=${configuration.value} />`}
    <p><a href=${addressOf('metrics')}>Metrics</a> · <a href=${addressOf('docs')}>API reference</a></p>
  `;
}

/** @param {{ state: Readiness }} props */
function Checks({
  state: {
    version,
    interface_version: interfaceVersion,
    role,
    store,
    queue,
    workers,
    dependencies = [],
    identities = [],
  },
}) {
  const hasSpace = queue && queue.waiting < queue.capacity;
  return html`<dl class="facts">
    <dt>Version</dt><dd>${version}, interface ${interfaceVersion}, role ${role}</dd>
    <dt>Job store</dt><dd><${Mark} good=${store?.reachable} words=${['reachable', 'out of reach']} /> ${store?.engine}</dd>
    <dt>Queue</dt><dd><${Mark} good=${hasSpace} words=${['has space', 'full']} /> ${queue?.waiting.toLocaleString('en')} of ${queue?.capacity.toLocaleString('en')} inputs wait</dd>
    <dt>Dependencies</dt><dd><${Mark} good=${dependencies.length === 0} words=${['none is away', `${dependencies.length} away`]} /></dd>
    <dt>Workers</dt><dd>${workers?.running} of ${workers?.limit} busy, ${workers?.processes === 1 ? 'one process' : `${workers?.processes} processes`}</dd>
    ${identities.length > 0 && html`<dt>${identities.length === 1 ? 'Signing identity' : 'Signing identities'}</dt>${identities.map((identity) => html`<dd><${Identity} identity=${identity} /></dd>`)}`}
  </dl>`;
}

/** @param {{ identity: import('../src/contract/service.ts').ShownIdentity }} props */
function Identity({ identity: { name, kind, away, publisher, ...credential } }) {
  if (away !== undefined)
    return html`<${Mark} good=${false} words=${['', 'away']} /> <strong>${name}</strong>, key in ${KEYS[credential.key_kind]}`;
  const { text, isSoon } = expiryOf(credential.not_after ?? '');
  return html`
    ${kind === 'development' ? html`<${Mark} good=${false} words=${['', 'development identity']} />` : html`<${Mark} good=${!isSoon} words=${['in order', text]} />`}
    ${' '}<strong>${name}</strong>: <${Credential} credential=${credential} />${publisher && html`; published by <${Credential} credential=${publisher} />`}
  `;
}

/** Kinds of keys, as `signer.type` has them. */
const KEYS = {
  development: 'a file of the service',
  pem: 'a PEM file',
  pkcs11: 'a PKCS #11 token',
  http: 'a signing service',
  vault: 'Vault',
  aws_kms: 'AWS KMS',
};

/** @param {{ credential: NonNullable<import('../src/contract/service.ts').ShownIdentity['publisher']> }} props */
function Credential({ credential: { subject, algorithm, key_kind: key, not_after: expiry = '' } }) {
  const when = html`<time datetime=${expiry} title=${exactTime(expiry)}>${expiryOf(expiry).text}</time>`;
  return html`<span class="path">${subject}</span> (${algorithm}, key in ${KEYS[key]}), ${when}`;
}

/** @param {{ good: boolean | undefined, words: [string, string] }} props */
function Mark({ good, words: [yes, no] }) {
  return html`<span class="state ${good ? 'good' : 'bad'}">${good ? yes : no}</span>`;
}

/** @param {{ configuration: ShownConfig }} props */
function Settings({ configuration: { settings, withheld } }) {
  const sections = Map.groupBy(Object.entries(settings), ([key]) => key.split('.', 1)[0] ?? '');
  return html`
    ${[...sections].map(
      ([section, entries]) => html`<details><summary>${section}</summary><dl class="facts">
        ${entries.map(([key, value]) => html`<dt><code>${key.slice(section.length + 1)}</code></dt><dd>${Array.isArray(value) ? value.join(', ') || 'none' : String(value)}</dd>`)}
      </dl></details>`,
    )}
    ${withheld.length > 0 && html`<p class="muted">Set, and not shown: ${withheld.join(', ')}.</p>`}
  `;
}
