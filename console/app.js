import { computed, signal } from '@preact/signals';
import { render } from 'preact';
import { addressOf, loginNeeded, noteAnswer, offlineSince, poll } from './api.js';
import { html } from './html.js';
import { JobPage } from './job-page.js';
import { JobsPage } from './jobs-page.js';
import { lazy } from './lazy.js';
import { LoginDialog } from './login-dialog.js';
import { linkTo, route } from './router.js';
import { clockTimeText } from './text.js';
import { ThemeSwitch } from './theme.js';

/** Pages that are loaded when somebody goes there. */
const ErrorsPage = lazy(async () => (await import('./errors-page.js')).ErrorsPage);
const InspectPage = lazy(async () => (await import('./inspect-page.js')).InspectPage);
const NewPage = lazy(async () => (await import('./new-page.js')).NewPage);
const PlayPage = lazy(async () => (await import('./play-page.js')).PlayPage);
const StatusPage = lazy(async () => (await import('./status-page.js')).StatusPage);

const READINESS_INTERVAL_MS = 5000;

/** @type {import('@preact/signals').Signal<import('../src/contract/service.ts').Readiness | null>} */
const readiness = signal(null);

const TABS = [
  { name: 'jobs', text: 'Jobs' },
  { name: 'new', text: 'New' },
  { name: 'inspect', text: 'Inspect' },
  { name: 'status', text: 'Status' },
];

const page = computed(() => {
  const [name = 'jobs', id] = route.value.parts;
  if (name === 'jobs') return id === undefined ? html`<${JobsPage} />` : html`<${JobPage} key=${id} id=${id} />`;
  if (name === 'new') return html`<${NewPage} />`;
  if (name === 'inspect') return html`<${InspectPage} />`;
  if (name === 'play') return html`<${PlayPage} />`;
  if (name === 'errors') return html`<${ErrorsPage} />`;
  if (name === 'status') return html`<${StatusPage} readiness=${readiness} />`;
  return html`<h1>There is no such page</h1><p>Go to <a href=${linkTo(['jobs'])}>the jobs</a>.</p>`;
});

function App() {
  const [current = 'jobs'] = route.value.parts;
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <header class="container">
      <nav aria-label="Pages">
        <ul>
          <li><strong>Attestream</strong></li>
          ${TABS.map(
            ({ name, text }) =>
              html`<li><a href=${linkTo([name])} aria-current=${current === name ? 'page' : undefined}>${text}</a></li>`,
          )}
        </ul>
        <${NodeState} />
      </nav>
    </header>
    <${Connection} />
    <main class="container" id="main" tabindex="-1">${page}</main>
    ${loginNeeded.value && html`<${LoginDialog} />`}
  `;
}

/** Says how old the page is while the service cannot be reached. */
function Connection() {
  const since = offlineSince.value;
  if (since === null) return null;
  return html`<div class="container"><p class="notice" role="status"><strong>As of ${clockTimeText(new Date(since))}, not connected.</strong> The service cannot be reached. The page tries again by itself.</p></div>`;
}

/** The state of the node, and what waits in its queue. */
function NodeState() {
  const state = readiness.value;
  if (state === null) return html`<ul><li><${ThemeSwitch} /></li></ul>`;
  const { waiting } = state.queue ?? { waiting: 0 };
  const [mark, words] =
    offlineSince.value !== null ? ['bad', 'Not connected'] : state.ready ? ['good', 'Ready'] : ['bad', 'Not ready'];
  return html`<ul>
    <li class="state ${mark}">${words}</li>
    <li class="muted">${waiting ?? 0} waiting, ${state.workers?.running ?? 0} running</li>
    <li><${ThemeSwitch} /></li>
  </ul>`;
}

async function lookAtNode() {
  try {
    const response = await fetch(addressOf('v2/health/ready'));
    // A node that is not ready answers 503, with its state as well.
    if (response.ok || response.status === 503) readiness.value = await response.json();
    noteAnswer(true);
  } catch {
    // Nothing answered, the answer was cut off, or a proxy answered instead of the service.
    noteAnswer(false);
  }
}

render(html`<${App} />`, document.body);
document.addEventListener('visibilitychange', lookAtNode);
for (const type of ['online', 'offline']) addEventListener(type, lookAtNode);
void poll(lookAtNode, READINESS_INTERVAL_MS, new AbortController().signal);
