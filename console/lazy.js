import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { html } from './html.js';

/**
 * Returns a component that is loaded when it is shown for the first time.
 * @param {() => Promise<any>} load
 */
export function lazy(load) {
  return (/** @type {Record<string, unknown>} */ props) => {
    const loaded = useSignal(/** @type {{ component: any } | null} */ (null));
    const problem = useSignal('');
    useEffect(() => {
      load().then(
        (component) => {
          loaded.value = { component };
        },
        () => {
          problem.value = 'This part of the page could not be loaded. Check the connection and reload the page.';
        },
      );
    }, []);
    if (problem.value !== '') return html`<p class="notice" role="alert">${problem.value}</p>`;
    return loaded.value === null
      ? html`<p aria-busy="true">Loading …</p>`
      : html`<${loaded.value.component} ...${props} />`;
  };
}
