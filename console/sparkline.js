import { html } from './html.js';

const [WIDTH, HEIGHT] = [160, 32];

/**
 * Draws how a number changed. The number itself stands beside it, so the line is hidden from screen readers.
 * @param {{ values: readonly number[] }} props
 */
export function Sparkline({ values: given }) {
  const values = given.filter(Number.isFinite);
  if (values.length < 2) return null;
  const largest = Math.max(...values, 1);
  const points = values.map((value, index) => {
    const x = (index / (values.length - 1)) * WIDTH;
    return `${x.toFixed(1)},${(HEIGHT - 1 - (value / largest) * (HEIGHT - 2)).toFixed(1)}`;
  });
  return html`<svg class="sparkline" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><polyline points=${points.join(' ')} /></svg>`;
}
