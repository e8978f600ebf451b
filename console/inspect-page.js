import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { loginNeeded } from './api.js';
import { html } from './html.js';
import { Provenance } from './provenance.js';
import { LARGE_FILE_BYTES, readFile } from './reader.js';
import { linkTo, route } from './router.js';
import { sizeText } from './text.js';
import { inputRef, locateOutput, verifyByService, verifyOutput } from './verify-by-service.js';

/**
 * @typedef {import('./reader.js').Reading} Reading
 *
 * @typedef {object} Subject what is inspected
 * @property {string} name
 * @property {number} [sizeBytes]
 * @property {string} [address] as the service refers to it
 * @property {'browser' | 'service'} by
 */

/**
 * Shows the provenance of an output of a job, of a dropped file, or of what a path or an address names. A dropped file is read
 * in the browser and sent nowhere; all else is verified by the service.
 */
export function InspectPage() {
  const { query } = route.value;
  const [job, index, path] = [query.get('job'), query.get('index') ?? '0', query.get('path')];
  const inspection = useInspection();
  useEffect(() => {
    if (job !== null) void inspection.output(job, index, path);
  }, [job, index, path, loginNeeded.value]);
  const { subject, reading, problem, share, isLarge } = inspection;
  return html`
    <h1>Inspect</h1>
    <${DropZone} take=${inspection.dropped} />
    <${ServiceForm} verify=${inspection.named} isOpen=${isLarge.value} />
    ${subject.value && html`<${Heading} subject=${subject.value} job=${job} index=${index} />`}
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    <div aria-live="polite">
      ${subject.value && !reading.value && problem.value === '' && html`<p aria-busy="true">${subject.value.by === 'browser' ? 'Reading …' : 'The service is verifying …'}</p>${share.value > 0 && html`<progress value=${share.value} max="1" aria-label="Progress"></progress>`}`}
      ${reading.value && html`<${Provenance} reading=${reading.value} />`}
    </div>
  `;
}

/** Holds what is inspected and what was found. A new inspection ends the one before. */
function useInspection() {
  const subject = useSignal(/** @type {Subject | null} */ (null));
  const reading = useSignal(/** @type {Reading | null} */ (null));
  const problem = useSignal('');
  const share = useSignal(0);
  const isLarge = useSignal(false);
  const current = useRef(new AbortController());
  useEffect(() => () => current.current.abort(), []);

  /** @param {(signal: AbortSignal) => Promise<Reading>} read */
  const run = async (read) => {
    current.current.abort();
    current.current = new AbortController();
    const { signal } = current.current;
    subject.value = null;
    reading.value = null;
    problem.value = '';
    share.value = 0;
    try {
      const found = await read(signal);
      if (!signal.aborted) reading.value = found;
    } catch (error) {
      if (!signal.aborted) problem.value = /** @type {Error} */ (error).message;
    }
  };
  /** @param {import('./api.js').Job} job */
  const onProgress = ({ progress }) => {
    if (progress) share.value = progress.fraction;
  };
  return {
    ...{ subject, reading, problem, share, isLarge },
    dropped: (/** @type {File} */ file) =>
      run(async (signal) => {
        subject.value = { name: file.name, sizeBytes: file.size, by: 'browser' };
        isLarge.value = file.size > LARGE_FILE_BYTES;
        return await readFile(file, file.name, signal);
      }),
    named: (/** @type {string} */ address, /** @type {boolean} */ isFolder) =>
      run((signal) => {
        subject.value = { name: address.split('/').at(-1) || address, address, by: 'service' };
        return verifyByService(inputRef(address, isFolder), { signal, onProgress });
      }),
    output: (/** @type {string} */ job, /** @type {string} */ index, /** @type {string | null} */ path) =>
      run(async (signal) => {
        const located = await locateOutput(job, index, path);
        const { name, address, file } = located;
        const sizeBytes = file && { sizeBytes: file.size_bytes };
        subject.value = { name, address, ...sizeBytes, by: 'service' };
        const onFetch = () => {
          subject.value = { name, ...sizeBytes, by: 'browser' };
        };
        return await verifyOutput(located, { signal, onProgress, onFetch });
      }),
  };
}

/** @param {{ subject: Subject, job: string | null, index: string }} props */
function Heading({ subject: { name, sizeBytes, address, by }, job, index }) {
  return html`<hgroup>
    <h2 class="path">${name} ${sizeBytes !== undefined && html`<small class="muted">${sizeText(sizeBytes)}</small>`}</h2>
    <p class="muted">${by === 'browser' ? 'Verified in this browser' : 'Verified by the service'}${address !== undefined && html`: <code class="path">${address}</code>`}${by === 'service' && job !== null && html` · <a href=${linkTo(['play'], { job, index })}>Play</a>`}</p>
  </hgroup>`;
}

/** @param {{ take: (file: File) => void }} props */
function DropZone({ take }) {
  const over = useSignal(false);
  /** @param {DragEvent} event */
  const drop = (event) => {
    event.preventDefault();
    over.value = false;
    const [dropped] = event.dataTransfer?.files ?? [];
    if (dropped !== undefined) take(dropped);
  };
  return html`<label
    class="drop ${over.value ? 'over' : ''}"
    onDrop=${drop}
    onDragOver=${(/** @type {DragEvent} */ event) => {
      event.preventDefault();
      over.value = true;
    }}
    onDragLeave=${() => {
      over.value = false;
    }}
  >
    <span>Drop a video or audio file here, or choose one. It is read in this browser and not uploaded.</span>
    <input
      type="file"
      onChange=${(/** @type {any} */ { target }) => {
        if (target.files[0] !== undefined) take(target.files[0]);
      }}
    />
  </label>`;
}

/**
 * Asks for a path or an address that the service verifies. Nothing is sent before the button is pressed.
 * @param {{ verify: (address: string, isFolder: boolean) => void, isOpen: boolean }} props
 */
function ServiceForm({ verify, isOpen }) {
  /** @param {any} event */
  const submit = (event) => {
    event.preventDefault();
    const { address, kind } = event.target.elements;
    verify(address.value.trim(), kind.value === 'folder');
  };
  return html`<details class="by-service" open=${isOpen}><summary>Have the service verify a path or an address, of any size</summary>
    ${isOpen && html`<p role="status">A browser reads a file of this size for minutes, and cannot hand it to the service: there are no uploads. The service is faster, where it can reach the file.</p>`}
    <form class="input-row" aria-label="Verify by the service" onSubmit=${submit}>
      <select name="kind" aria-label="Kind of input"><option value="file">File</option><option value="folder">Publication (folder)</option></select>
      <input name="address" required aria-label="Path or address" placeholder="/media/film.mp4, https://… or s3://…" />
      <button type="submit" class="small">Verify</button>
    </form>
  </details>`;
}
