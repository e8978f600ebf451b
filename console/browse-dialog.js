import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { call } from './api.js';
import { html } from './html.js';
import { sizeText } from './text.js';

/** @typedef {import('../src/contract/browsed-folder.ts').BrowsedFolder} Folder */

/**
 * Returns a page of a folder of inputs; of the list of roots without a path.
 * @param {string | null} path
 * @param {string | null} [cursor]
 * @returns {Promise<Folder>}
 */
export function listInputs(path, cursor = null) {
  const query = new URLSearchParams({ ...(path !== null && { path }), ...(cursor !== null && { cursor }) });
  return call('GET', `v2/inputs?${query}`);
}

/**
 * Lets somebody choose a file, or a folder, among those that the service reads inputs from.
 * @param {{ takesFolder: boolean, onChoose: (path: string) => void, onClose: () => void }} props
 */
export function BrowseDialog({ takesFolder, onChoose, onClose }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const folder = useSignal(/** @type {Folder | null} */ (null));
  const problem = useSignal('');
  const latest = useRef(/** @type {Promise<Folder> | null} */ (null));
  /**
   * Shows a listing, unless another one was asked for before it came.
   * @param {Promise<Folder>} listing
   */
  const show = async (listing) => {
    latest.current = listing;
    const [found, error] = await listing.then(
      (found) => [found, ''],
      (error) => [folder.value, error.message],
    );
    if (latest.current !== listing) return;
    folder.value = found;
    problem.value = error;
  };
  useEffect(() => {
    dialog.current?.showModal();
    void show(listInputs(null));
  }, []);
  const more = async (/** @type {Folder} */ shown) => {
    const next = await listInputs(shown.path, shown.next_cursor);
    return { ...next, entries: [...shown.entries, ...next.entries] };
  };
  const shown = folder.value;
  return html`<dialog ref=${dialog} aria-labelledby="browse-title" onClose=${onClose}>
    <article class="browse">
      <header>
        <button type="button" aria-label="Close" rel="prev" onClick=${() => dialog.current?.close()}></button>
        <h2 id="browse-title">${takesFolder ? 'Choose a folder' : 'Choose a file'}</h2>
        <p class="path">${shown?.path ?? 'Folders that inputs are read from'}</p>
      </header>
      ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
      ${
        shown !== null &&
        html`<ul>
        ${shown.path !== null && html`<li><button type="button" class="entry" onClick=${() => show(listInputs(shown.parent))}>Up, to ${shown.parent ?? 'all folders'}</button></li>`}
        ${shown.entries.map((entry) => html`<${Entry} key=${entry.path} entry=${entry} label=${shown.path === null ? entry.path : entry.name} takesFolder=${takesFolder} onOpen=${() => show(listInputs(entry.path))} onChoose=${() => onChoose(entry.path)} />`)}
        ${shown.entries.length === 0 && html`<li class="muted">Nothing here can be an input.</li>`}
        ${shown.next_cursor !== null && html`<li><button type="button" class="secondary outline small" onClick=${() => show(more(shown))}>Show more</button></li>`}
      </ul>`
      }
      ${
        takesFolder &&
        shown?.path != null &&
        html`<footer><button type="button" onClick=${() => onChoose(shown.path ?? '')}>Use this folder</button></footer>`
      }
    </article>
  </dialog>`;
}

/** @param {{ entry: Folder['entries'][number], label: string, takesFolder: boolean, onOpen: () => void, onChoose: () => void }} props */
function Entry({ entry: { kind, size_bytes: size }, label, takesFolder, onOpen, onChoose }) {
  if (kind === 'folder')
    return html`<li><button type="button" class="entry" onClick=${onOpen}><span>${label}/</span></button></li>`;
  const text = html`<span>${label}</span><small class="muted">${sizeText(size ?? 0)}</small>`;
  return html`<li>${takesFolder ? html`<span class="entry muted">${text}</span>` : html`<button type="button" class="entry" onClick=${onChoose}>${text}</button>`}</li>`;
}
