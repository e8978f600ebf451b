import { useSignal } from '@preact/signals';
import { html } from './html.js';
import { WORDS } from './state-mark.js';
import { clockText, sizeText } from './text.js';

/**
 * @typedef {import('./playlists.js').Rendition} Rendition
 * @typedef {import('./playlists.js').Fragment} Fragment
 */

/** Up to this number every fragment is drawn with its outline; of more, those of one state that follow each other are drawn as one. */
const MAX_OUTLINED = 400;
/** Failures that are listed below the timeline. */
const MAX_LISTED = 20;

/**
 * Draws a rendition as its fragments: outlined before they are verified, then filled in the colour of the verdict. Pointer and
 * arrow keys choose a fragment, which is then described; a click or Enter plays from there. A line below them begins where the
 * playlist was found not to be the signed one.
 * @param {{ rendition: Rendition, changedAt: number | null, time: number, seek: (seconds: number) => void }} props
 */
export function Timeline({ rendition: { name, fragments }, changedAt, time, seek }) {
  const chosen = useSignal(-1);
  const end = fragments.reduce((latest, { start, duration }) => Math.max(latest, start + duration), 0);
  const verified = fragments.filter((fragment) => ['trusted', 'valid'].includes(stateOf(fragment)));
  const failed = fragments.filter((fragment) => stateOf(fragment) === 'invalid');
  const unsigned = fragments.filter((fragment) => stateOf(fragment) === 'none');
  const summary = `${verified.length} of ${fragments.length} fragments verified`;
  const x = (/** @type {number} */ seconds) => (end === 0 ? 0 : (seconds / end) * 1000);
  const current = fragments[chosen.value] ?? fragmentAt(fragments, time);
  const point = (/** @type {any} */ { currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    chosen.value = fragmentAt(fragments, ((clientX - left) / width) * end)?.index ?? -1;
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const index = keyTarget(event.key, current?.index ?? 0, fragments.length);
    if (event.key === 'Enter' && current) seek(current.start);
    if (index === null && event.key !== 'Enter') return;
    event.preventDefault();
    if (index !== null) chosen.value = index;
  };
  const leave = () => {
    chosen.value = -1;
  };
  return html`<figure class="timeline">
    <figcaption><strong>${name}</strong>: ${summary}${failed.length > 0 && html`, <strong class="bad">${failed.length} not intact</strong>`}${unsigned.length > 0 && `, ${unsigned.length} without provenance`}${changedAt !== null && html`, <strong class="bad">its playlist, or a file that it names, is not the signed one${changedAt > 0 && `, since ${clockText(changedAt)}`}</strong>`}</figcaption>
    <div role="slider" tabindex="0" aria-label="Fragments of ${name}" aria-valuemin="0" aria-valuemax=${Math.max(0, fragments.length - 1)} aria-valuenow=${current?.index ?? 0} aria-valuetext=${current ? textOf(current) : 'No fragments'}
      onPointerMove=${point} onPointerLeave=${leave} onBlur=${leave} onKeyDown=${press} onClick=${() => current && seek(current.start)}>
      <svg viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true">
        ${runsOf(fragments).map(
          ({ first, last }) =>
            html`<rect key=${first.index} data-index=${first.index} x=${x(first.start)} width=${x(last.start + last.duration - first.start)} y="2" height="20" class=${stateOf(first)} />`,
        )}
        ${changedAt !== null && html`<rect class="changed" data-seconds=${changedAt} x=${x(changedAt)} width=${1000 - x(changedAt)} y="20" height="4" />`}
        ${chosen.value >= 0 && current && html`<rect class="chosen" x=${x(current.start)} width=${x(current.duration)} y="1" height="22" />`}
        <line x1=${x(time)} x2=${x(time)} y1="0" y2="24" />
      </svg>
    </div>
    <p class="readout muted">${current ? textOf(current) : 'There are no fragments.'}</p>
    ${failed.length > 0 && html`<ul class="failures">${failed.slice(0, MAX_LISTED).map((fragment) => html`<${Failure} fragment=${fragment} seek=${seek} />`)}</ul>`}
    ${failed.length > MAX_LISTED && html`<p class="muted">and ${failed.length - MAX_LISTED} more</p>`}
  </figure>`;
}

/** @param {{ fragment: Fragment, seek: (seconds: number) => void }} props */
function Failure({ fragment, seek }) {
  const { index, start, reading } = fragment;
  return html`<li data-index=${index} data-seconds=${start} data-reason=${reasonOf(fragment)}><button type="button" class="secondary outline small" onClick=${() => seek(start)} aria-label="Play from ${clockText(start)}">${clockText(start)}</button> Fragment ${index}: ${reading?.verification.summary} <code>${reasonOf(fragment)}</code></li>`;
}

/**
 * Returns the fragment that is on screen at a time; at the end, the last one.
 * @param {readonly Fragment[]} fragments
 * @param {number} seconds
 */
function fragmentAt(fragments, seconds) {
  return fragmentsAt(fragments, seconds)[0];
}

/**
 * Returns the fragments that may be on screen at a time: one, unless playlists that were loaded one after the other differ.
 * @param {readonly Fragment[]} fragments
 * @param {number} seconds
 */
export function fragmentsAt(fragments, seconds) {
  const found = fragments.filter(({ start, duration }) => start <= seconds && seconds < start + duration);
  return found.length > 0 ? found : fragments.slice(-1);
}

/**
 * Returns the fragment that a key chooses; null for keys that choose none.
 * @param {string} key
 * @param {number} index
 * @param {number} count
 */
function keyTarget(key, index, count) {
  const targets = /** @type {Record<string, number>} */ ({
    ArrowRight: index + 1,
    ArrowUp: index + 1,
    ArrowLeft: index - 1,
    ArrowDown: index - 1,
    Home: 0,
    End: count - 1,
  });
  const target = targets[key];
  return target === undefined ? null : Math.min(Math.max(target, 0), count - 1);
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
function stateOf({ reading }) {
  return reading?.verification.state ?? 'unchecked';
}

/** @param {Fragment} fragment */
function reasonOf({ reading }) {
  const failures = reading?.verification.codes.filter(
    ({ code, kind }) => kind === 'failure' && code !== 'signingCredential.untrusted',
  );
  return failures?.[0]?.code ?? '';
}

/** @param {Fragment} fragment */
function textOf(fragment) {
  const { index, start, duration, sizeBytes, reading } = fragment;
  const size = sizeBytes === 0 ? '' : `, ${sizeText(sizeBytes)}`;
  const verdict = reading === null ? 'not verified yet' : WORDS[reading.verification.state];
  const reason = reasonOf(fragment);
  return `Fragment ${index}, ${clockText(start)} to ${clockText(start + duration)}${size}: ${verdict}${reason && ` (${reason})`}`;
}
