import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { html } from './html.js';
import { listOutput, outputAddress } from './outputs.js';
import { Provenance } from './provenance.js';
import { MAX_FILE_BYTES, verify } from './reader.js';
import { route } from './router.js';
import { sizeText } from './text.js';

/** @typedef {import('./reader.js').Verdict} Verdict */

/** Media types by extension, where the browser knows none. */
const MEDIA_TYPES = /** @type {Record<string, string>} */ ({
  mp4: 'video/mp4',
  m4v: 'video/mp4',
  mov: 'video/quicktime',
  m4a: 'audio/mp4',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  flac: 'audio/flac',
  avi: 'video/avi',
});

/** Shows the provenance of an output of a job, or of a file that is dropped here. It is read in the browser, and never uploaded. */
export function InspectPage() {
  const { query } = route.value;
  const [job, index, path] = [query.get('job'), query.get('index') ?? '0', query.get('path')];
  const file = useSignal(/** @type {{ name: string, size: number } | null} */ (null));
  const verdict = useSignal(/** @type {Verdict | null} */ (null));
  const problem = useSignal('');
  /** @param {string} name @param {number} size @param {() => Promise<Blob>} open */
  const inspect = async (name, size, open) => {
    file.value = { name, size };
    verdict.value = null;
    problem.value =
      size > MAX_FILE_BYTES
        ? `${sizeText(size)} is more than a browser can read. Verify it by the service: POST /v2/verify.`
        : '';
    if (problem.value !== '') return;
    try {
      const blob = await open();
      verdict.value = await verify(blob, mediaTypeOf(name, blob.type));
    } catch (error) {
      problem.value = `The file cannot be read: ${/** @type {Error} */ (error).message}`;
    }
  };
  useEffect(() => {
    if (job === null) return;
    openOutput(job, index, path).then(
      ({ name, size, open }) => inspect(name, size, open),
      (error) => {
        problem.value = error.message;
      },
    );
  }, [job, index, path]);
  return html`
    <h1>Inspect</h1>
    <${DropZone} take=${(/** @type {File} */ dropped) => inspect(dropped.name, dropped.size, async () => dropped)} />
    ${file.value && html`<h2 class="path">${file.value.name} <small class="muted">${sizeText(file.value.size)}</small></h2>`}
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    <div aria-live="polite">
      ${file.value && !verdict.value && problem.value === '' && html`<p aria-busy="true">Reading …</p>`}
      ${verdict.value && html`<${Provenance} verdict=${verdict.value} />`}
    </div>
  `;
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
    Drop a video or audio file here, or choose one. It is read in this browser and not uploaded.
    <input
      type="file"
      onChange=${(/** @type {any} */ { target }) => {
        if (target.files[0] !== undefined) take(target.files[0]);
      }}
    />
  </label>`;
}

/**
 * @param {string} job
 * @param {string} index
 * @param {string | null} path
 */
async function openOutput(job, index, path) {
  const files = await listOutput(job, index);
  const file = path === null ? files[0] : files.find((candidate) => candidate.path === path);
  if (file === undefined) throw new Error('The output is not there any more.');
  const open = async () => {
    const response = await fetch(outputAddress(job, index, file.path));
    if (!response.ok) throw new Error(`the service answered with status ${response.status}`);
    return response.blob();
  };
  return { name: file.path, size: file.size_bytes, open };
}

/** @param {string} name @param {string} given */
function mediaTypeOf(name, given) {
  const extension = name.split('.').at(-1)?.toLowerCase() ?? '';
  return MEDIA_TYPES[extension] ?? (given || 'application/octet-stream');
}
