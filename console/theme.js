import { signal } from '@preact/signals';
import { html } from './html.js';

const KEY = 'attestream-theme';

/** The theme that was chosen: "light", "dark", or empty where the system decides. */
const chosen = signal(kept());

apply();

/** Switches between light and dark, and keeps the choice in this browser. Without one, the system decides. */
export function ThemeSwitch() {
  const isDark = (chosen.value || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const next = isDark ? 'light' : 'dark';
  const change = () => {
    chosen.value = next;
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Storage is switched off: the choice holds until the page is closed.
    }
    apply();
  };
  return html`<button type="button" class="secondary outline small" onClick=${change} aria-label="Switch to ${next} colours">${isDark ? 'Light' : 'Dark'}</button>`;
}

function apply() {
  if (chosen.value !== '') document.documentElement.dataset['theme'] = chosen.value;
}

function kept() {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : '';
  } catch {
    return '';
  }
}
