import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call } from './api.js';
import { BrowseDialog, listInputs } from './browse-dialog.js';
import { html } from './html.js';
import { OPERATIONS } from './operations.js';
import { Field, isComposite, resolved, typedValue, withCode } from './request-form.js';
import { RequestView } from './request-view.js';
import { linkTo, route } from './router.js';

/** @typedef {import('./request-form.js').Schema} Schema */
/** @typedef {{ field: string, message: string }} Problem */

/** Kinds of inputs, by their `type` in the API. */
const KINDS = {
  local_file_path: 'File on the service host',
  local_folder_path: 'Folder on the service host',
  remote_file_url: 'File at a URL',
  remote_folder_url: 'Folder at a URL',
};

/** Writes a request for one of the operations, in a form made from the API's own document, and submits it. */
export function NewPage() {
  const [, name = 'c2pa-video'] = route.value.parts;
  const entries = Object.entries(OPERATIONS);
  const operation = entries.find(([one]) => one === name)?.[1];
  const document = useSignal(/** @type {Schema | null} */ (null));
  const identities = useSignal(/** @type {readonly string[]} */ ([]));
  const problem = useSignal('');
  useEffect(() => {
    Promise.all([call('GET', 'openapi.json'), call('GET', 'v2/session')]).then(
      ([found, session]) => {
        identities.value = session.identities;
        document.value = found;
      },
      (error) => {
        problem.value =
          error.status === 404
            ? 'The forms are made from the description of the API, which is switched off on this service. Set server.docs to true, or use the API.'
            : error.message;
      },
    );
  }, []);
  return html`
    <h1>New job</h1>
    <p role="group" aria-label="Operation" class="filter">
      ${entries.map(([one, { text }]) => html`<a role="button" class=${one === name ? '' : 'outline secondary'} aria-current=${one === name ? 'true' : undefined} href=${linkTo(['new', one])}>${text}</a>`)}
    </p>
    ${problem.value !== '' && html`<p class="notice" role="alert">${problem.value}</p>`}
    ${operation === undefined && html`<p>There is no such operation.</p>`}
    ${document.value === null && problem.value === '' && html`<p aria-busy="true">Loading …</p>`}
    ${operation !== undefined && document.value !== null && html`<${RequestForm} key=${name} operation=${operation} document=${document.value} identities=${identities.value} />`}
  `;
}

/** @param {{ operation: import('./operations.js').Operation, document: Schema, identities: readonly string[] }} props */
function RequestForm({ operation, document, identities }) {
  const { path, isOfFolders } = operation;
  const inputs = useSignal([newInput(isOfFolders)]);
  /** @type {import('@preact/signals').Signal<Record<string, string>>} */
  const values = useSignal({});
  const problem = useSignal(/** @type {Problem | null} */ (null));
  const busy = useSignal(false);
  const { schema, description } = requestSchema(document, path);
  const params = resolved(schema.properties.params, document);
  const fields = Object.entries(params.properties)
    .filter(([name]) => name !== 'identity' || identities.length > 1)
    .map(([name, one]) => ({
      field: `params.${name}`,
      schema: name === 'identity' ? choiceOf(identities) : resolved(/** @type {Schema} */ (one), document),
      required: params.required?.includes(name) === true,
    }));
  const outputs = outputFields(document);
  const { request, notJson } = requestOf(inputs.value, [...fields, ...outputs], values.value);
  const shown = notJson ?? problem.value;
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (notJson !== null) return;
    busy.value = true;
    try {
      const { job_id: id } = await call('POST', path, { body: request });
      location.hash = linkTo(['jobs', id]);
    } catch (error) {
      const { message, details } = /** @type {import("./api.js").ApiError} */ (error);
      const index = details?.input_index;
      problem.value = { field: details?.field ?? (index === undefined ? '' : `inputs[${index}]`), message };
    } finally {
      busy.value = false;
    }
  };
  const known = [
    ...inputs.value.map((_input, index) => `inputs[${index}]`),
    ...[...fields, ...outputs].map(({ field }) => field),
  ];
  const at = shown === null ? undefined : fieldOf(shown.field, known);
  /** @param {typeof fields[number]} one */
  const field = (one) =>
    html`<${Field} key=${one.field} ...${one} values=${values} problem=${at === one.field ? shown?.message : undefined} />`;
  const isFirst = (/** @type {typeof fields[number]} */ one) => one.required || one.field === 'params.identity';
  const optional = fields.filter((one) => !isFirst(one));
  const groups = [
    { title: '', members: fields.filter(isFirst) },
    { title: 'Options', members: optional.filter((one) => !isComposite(one.schema)) },
    { title: 'Options that are written as JSON', members: optional.filter((one) => isComposite(one.schema)) },
    { title: 'Where the result goes', members: outputs },
  ];
  return html`<div class="columns">
    <form onSubmit=${submit} novalidate aria-label=${operation.text}>
      <p>${withCode(description)}</p>
      <h2>${isOfFolders ? 'Folders' : 'Inputs'}</h2>
      <${Inputs} inputs=${inputs} isOfFolders=${isOfFolders} problem=${at?.startsWith('inputs[') ? { field: at, message: shown?.message } : null} />
      ${groups.map(({ title, members }) => html`<${Group} title=${title} open=${members.some((one) => one.field === at)}>${members.map(field)}</${Group}>`)}
      ${shown !== null && at === undefined && html`<p class="notice" role="alert">${shown.message}</p>`}
      ${shown !== null && at !== undefined && html`<p class="bad" role="alert">Not submitted: see ${at}.</p>`}
      <button type="submit" aria-busy=${busy.value ? 'true' : undefined} disabled=${busy.value}>Submit</button>
    </form>
    <aside aria-label="The request" class="request"><h2>The request</h2><${RequestView} path=${path} request=${request} /></aside>
  </div>`;
}

/** @param {readonly string[]} identities that the caller may use, its default first */
function choiceOf(identities) {
  return { type: 'string', enum: identities, description: `Signs the outputs; \`${identities[0]}\` is the default.` };
}

/** @param {{ title: string, open: boolean, children: unknown }} props */
function Group({ title, open, children }) {
  return title === ''
    ? html`<div>${children}</div>`
    : html`<details open=${open}><summary>${title}</summary>${children}</details>`;
}

/** @param {boolean} isOfFolders */
function newInput(isOfFolders) {
  return { type: isOfFolders ? 'local_folder_path' : 'local_file_path', address: '' };
}

/**
 * Shows the inputs, each a kind and an address.
 * @param {{ inputs: import('@preact/signals').Signal<ReturnType<typeof newInput>[]>, isOfFolders: boolean, problem: Problem | null }} props
 */
function Inputs({ inputs, isOfFolders, problem }) {
  /** @param {number} index @param {Partial<ReturnType<typeof newInput>>} change */
  const change = (index, change) => {
    inputs.value = inputs.value.map((input, at) => (at === index ? { ...input, ...change } : input));
  };
  const canBrowse = useSignal(false);
  const browsed = useSignal(/** @type {number | null} */ (null));
  useEffect(() => {
    listInputs(null).then(
      () => {
        canBrowse.value = true;
      },
      // No roots are set, or there is nothing to list them with now: paths are typed in.
      () => undefined,
    );
  }, []);
  const close = () => {
    browsed.value = null;
  };
  const kinds = Object.entries(KINDS).filter(([type]) => !isOfFolders || type.includes('folder'));
  /** @param {Event} event */
  const textOf = (event) => /** @type {HTMLInputElement} */ (event.target).value;
  return html`
    ${inputs.value.map(({ type, address }, index) => {
      const wrong = problem?.field === `inputs[${index}]` ? problem.message : undefined;
      return html`<div class="field" key=${index}>
        <div class="input-row">
          <select aria-label="Kind of input ${index}" value=${type} onChange=${(/** @type {Event} */ event) => change(index, { type: textOf(event) })}>
            ${kinds.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
          </select>
          <input aria-label="Address of input ${index}" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" value=${address}
            placeholder=${type.endsWith('_url') ? 'https://… or s3://…' : '/media/…'} aria-invalid=${wrong === undefined ? undefined : 'true'} aria-describedby="input-${index}-help"
            onInput=${(/** @type {Event} */ event) => change(index, { address: textOf(event) })} />
          ${
            canBrowse.value &&
            type.startsWith('local_') &&
            html`<button type="button" class="secondary outline" aria-label="Browse for input ${index}" onClick=${() => {
              browsed.value = index;
            }}>Browse</button>`
          }
          ${
            inputs.value.length > 1 &&
            html`<button type="button" class="secondary outline" aria-label="Remove input ${index}" onClick=${() => {
              inputs.value = inputs.value.filter((_input, at) => at !== index);
            }}>Remove</button>`
          }
        </div>
        <small id="input-${index}-help" class="help bad">${wrong ?? ''}</small>
      </div>`;
    })}
    <button type="button" class="secondary outline small" onClick=${() => {
      inputs.value = [...inputs.value, newInput(isOfFolders)];
    }}>Add another</button>
    ${
      browsed.value !== null &&
      html`<${BrowseDialog} takesFolder=${inputs.value[browsed.value]?.type === 'local_folder_path'} onClose=${close} onChoose=${(
        /** @type {string} */ path,
      ) => {
        change(browsed.value ?? 0, { address: path });
        close();
      }} />`
    }
  `;
}

/** @param {Schema} document @param {string} path */
function requestSchema(document, path) {
  const { requestBody } = document['paths'][`/${path}`].post;
  const schema = resolved(requestBody.content['application/json'].schema, document);
  return { schema, description: schema.description };
}

/** @param {Schema} document */
function outputFields(document) {
  const kinds = document['components'].schemas.ApiOutputSpec.oneOf;
  /** @type {Record<string, Schema>} */
  const properties = Object.assign({}, ...kinds.map((/** @type {Schema} */ kind) => kind['properties']));
  const types = kinds.map((/** @type {Schema} */ kind) => kind['properties'].type.const);
  return Object.entries({
    ...properties,
    type: { type: 'string', enum: types, description: 'A folder of the service host, or a bucket.' },
  }).map(([name, schema]) => ({ field: `output.${name}`, schema: resolved(schema, document), required: false }));
}

/**
 * Returns the request that the form stands for, and the first field that is not JSON though it must be.
 * @param {readonly ReturnType<typeof newInput>[]} inputs
 * @param {readonly { field: string, schema: Schema }[]} fields
 * @param {Record<string, string>} values
 */
function requestOf(inputs, fields, values) {
  /** @type {Record<string, any>} */
  const request = {
    inputs: inputs.map(({ type, address }) => ({ type, [type.endsWith('_url') ? 'url' : 'path']: address })),
  };
  /** @type {Problem | null} */
  let notJson = null;
  for (const { field, schema } of fields) {
    const [group = '', name = ''] = field.split('.');
    try {
      const value = typedValue(schema, values[field]);
      if (value !== undefined) request[group] = { ...request[group], [name]: value };
    } catch (error) {
      notJson ??= { field, message: `This is not JSON: ${/** @type {Error} */ (error).message}` };
    }
  }
  if (request['output'] !== undefined) request['output'] = { type: 'local', ...request['output'] };
  return { request, notJson };
}

/**
 * Returns the field of the form that an error is about, which may name something inside it.
 * @param {string} field such as "params.tracks[0].file"
 * @param {readonly string[]} known
 */
function fieldOf(field, known) {
  return known.find((one) => field === one || field.startsWith(`${one}.`) || field.startsWith(`${one}[`));
}
