import { html } from './html.js';
import { linkTo } from './router.js';

/** Names a reason, and links its documentation. @param {{ reason: string }} props */
export function Reason({ reason }) {
  return html`<p><code>${reason}</code> · <a href=${linkTo(['errors', reason])} aria-label="Open documentation of ${reason}">Open documentation</a></p>`;
}
