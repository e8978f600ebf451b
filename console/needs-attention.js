import { html } from './html.js';
import { otherNodes, samples } from './node-metrics.js';
import { Reason } from './reason.js';
import { clockTimeText, exactTime, sizeText } from './text.js';
import { dependencyText } from './waiting.js';

/** @typedef {import('../src/contract/service.ts').Readiness} Readiness */
/** @typedef {import('../src/contract/service.ts').AwayDependency} AwayDependency */

const DAY_MS = 86_400_000;

/** A disk with less free space than this share of its size is pointed out, as the alert does (deploy/prometheus-rules.yml). */
const LITTLE_SPACE = 0.1;

/** An identity that expires within this time is pointed out. */
const EXPIRY_WARNING_MS = 30 * DAY_MS;

/** Returns when a certificate expires, in words, and whether that is soon. @param {string} expiry */
export function expiryOf(expiry) {
  const leftMs = Date.parse(expiry) - Date.now();
  const days = Math.floor(leftMs / DAY_MS);
  const text = leftMs < 0 ? 'has expired' : days === 1 ? 'expires in one day' : `expires in ${days} days`;
  return { text, isSoon: leftMs < EXPIRY_WARNING_MS };
}

/** Lists what somebody has to do something about, the most urgent first. @param {{ state: Readiness }} props */
export function NeedsAttention({ state: { store, queue, identity, identities, dependencies = [] } }) {
  const items = [
    ...(store?.reachable === false ? [storeItem(store.engine)] : []),
    ...dependencies.map(awayItem),
    ...(queue && queue.waiting >= queue.capacity ? [queueItem(queue.waiting)] : []),
    ...metricsItems(samples.value.at(-1)),
    ...(identities ?? (identity ? [{ name: '', ...identity }] : [])).flatMap(identityItems),
  ];
  if (items.length === 0) return html`<p class="muted">Nothing needs attention.</p>`;
  return html`<ul class="groups" aria-label="Needs attention">${items.map((item) => html`<li class="group">${item}</li>`)}</ul>`;
}

/** @param {string} engine */
function storeItem(engine) {
  return html`<p><strong class="bad">The job store (${engine}) cannot be written.</strong> Submissions are refused until it can be. The log of the service says why.</p>`;
}

/** @param {AwayDependency} away */
function awayItem({ dependency, state, since, reason, message }) {
  const words = dependencyText(dependency);
  const [mark, text] =
    state === 'returning' ? ['waits', 'works again, and few inputs at a time use it. Away'] : ['bad', 'away'];
  return html`<p><strong class=${mark}>${words.charAt(0).toUpperCase()}${words.slice(1)}: ${text} since <time datetime=${since} title=${exactTime(since)}>${clockTimeText(new Date(since))}</time>.</strong> Inputs that need it wait, and go on by themselves.</p>
    <p>${message}</p>
    <${Reason} reason=${reason} />`;
}

/** @param {number} waiting */
function queueItem(waiting) {
  return html`<p><strong class="bad">The queue is full.</strong> ${waiting.toLocaleString('en')} inputs wait. Submissions are refused until some have run.</p>`;
}

/** @param {import('./node-metrics.js').Sample | undefined} sample */
function metricsItems(sample) {
  if (sample === undefined) return [];
  const { nodesLost, outputsFree, outputsSize, scratchFree, scratchSize } = sample;
  const disks = /** @type {const} */ ([
    ['outputs', 'output_sinks.local.base_dir', outputsFree, outputsSize],
    ['scratch files', 'jobs.scratch_dir', scratchFree, scratchSize],
  ]);
  return [
    ...(nodesLost > 0
      ? [
          html`<p><strong class="bad">${nodesLost === 1 ? 'One node was' : `${nodesLost} nodes were`} lost within the last hour.</strong> The others have taken over its inputs.</p>${otherNodes.value.slice(0, nodesLost).map(lastSeen)}`,
        ]
      : []),
    ...disks
      .filter(([, , free, size]) => free < size * LITTLE_SPACE)
      .map(
        ([words, key, free]) =>
          html`<p><strong class="waits">The disk of ${words} has ${sizeText(free)} left.</strong> Free some space in <code>${key}</code>: inputs that do not fit wait.</p>`,
      ),
  ];
}

/** @param {import('./node-metrics.js').OtherNode} node */
function lastSeen({ name, seenAtMs }) {
  const seen = new Date(seenAtMs);
  return html`<p><span class="path">${name}</span>, last seen at <time datetime=${seen.toISOString()}>${clockTimeText(seen)}</time></p>`;
}

/** @param {Pick<import('../src/contract/service.ts').ShownIdentity, 'name' | 'kind' | 'not_after'>} identity */
function identityItems({ name, kind, not_after: expiry }) {
  if (kind === 'development')
    return [
      html`<p><strong class="waits">Outputs are signed by a development identity.</strong> Nobody has a reason to trust it. Set <code>signing.certificate_path</code> before outputs are published.</p>`,
    ];
  // One that is away is among the dependencies.
  if (expiry === undefined) return [];
  const { text, isSoon } = expiryOf(expiry);
  if (!isSoon) return [];
  return [
    html`<p><strong class="bad">The certificate of the signing identity${name && ` "${name}"`} ${text}.</strong> Renew its files; no restart is needed.</p>`,
  ];
}
