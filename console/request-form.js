import { html } from './html.js';

/** Form fields derived from the JSON Schemas of the API's own document, with its descriptions and bounds. */

/** @typedef {Record<string, any>} Schema */
/** @typedef {import('@preact/signals').Signal<Record<string, string>>} Values texts as they were typed, by field such as "params.strict" */

/**
 * Returns a schema with its reference resolved, and without null where that is the only alternative.
 * @param {Schema} schema
 * @param {Schema} document
 * @returns {Schema}
 */
export function resolved(schema, document) {
  if (typeof schema.$ref === 'string') {
    const [, name = ''] = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref) ?? [];
    return { ...document.components.schemas[name], ...(schema.description && { description: schema.description }) };
  }
  const others = schema.anyOf?.filter((/** @type {Schema} */ one) => one.type !== 'null') ?? [];
  if (others.length !== 1) return schema;
  const inner = resolved(others[0], document);
  return { ...inner, description: schema.description ?? inner.description };
}

/**
 * Returns true for a schema whose values are typed in as JSON.
 * @param {Schema} schema resolved
 */
export function isComposite({ type, items, anyOf, oneOf }) {
  if (type === 'array') return items?.enum === undefined;
  return (
    type === 'object' ||
    [...(anyOf ?? []), ...(oneOf ?? [])].some((one) => one.$ref !== undefined || one.type === 'object')
  );
}

/**
 * Returns the value that a text stands for; undefined for an empty one. Throws a SyntaxError for a composite that is not JSON.
 * @param {Schema} schema resolved
 * @param {string | undefined} text
 */
export function typedValue(schema, text = '') {
  if (text.trim() === '') return undefined;
  if (isComposite(schema)) return JSON.parse(text);
  if (schema.type === 'boolean') return text === 'true';
  if (schema.type === 'array') return text.split(',');
  if (schema.type !== 'number' && schema.type !== 'integer') return text;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

/**
 * Shows one value of a request: a label, a control, and the description or what is wrong with it.
 * @param {{ field: string, schema: Schema, required?: boolean, values: Values, problem: string | undefined }} props
 */
export function Field({ field, schema, required = false, values, problem }) {
  const id = `field-${field.replace(/[^\w]+/g, '-')}`;
  const label = labelOf(field);
  /** @param {Event} event */
  const change = (event) => {
    values.value = { ...values.value, [field]: /** @type {HTMLInputElement} */ (event.target).value };
  };
  const control = {
    id,
    value: values.value[field] ?? '',
    onInput: change,
    required,
    'aria-invalid': problem === undefined ? undefined : 'true',
    'aria-describedby': `${id}-help`,
  };
  const help = html`<small id="${id}-help" class="help ${problem === undefined ? '' : 'bad'}">${problem ?? withCode(schema['description'] ?? '')}</small>`;
  if (schema.type === 'array' && !isComposite(schema))
    return html`<${Choices} field=${field} label=${label} options=${schema.items.enum} values=${values} help=${help} />`;
  return html`<div class="field"><label for=${id}>${label}${required && html` <span class="muted">(required)</span>`}</label>${controlOf(schema, control)}${help}</div>`;
}

/** @param {Schema} schema @param {Record<string, unknown>} control */
function controlOf(schema, control) {
  if (isComposite(schema))
    return html`<textarea ...${control} rows="3" spellcheck="false" placeholder=${schema.type === 'array' ? '[ … ]' : '{ … }'}></textarea>`;
  const options = schema.type === 'boolean' ? ['true', 'false'] : schema.enum;
  if (options !== undefined)
    return html`<select ...${control}><option value="">default</option>${options.map((/** @type {string} */ option) => html`<option value=${option}>${schema.type === 'boolean' ? { true: 'yes', false: 'no' }[option] : option}</option>`)}</select>`;
  if (schema.type === 'number' || schema.type === 'integer')
    return html`<input ...${control} inputmode="decimal" autocomplete="off" />`;
  return html`<input ...${control} type="text" autocomplete="off" autocapitalize="off" spellcheck="false" />`;
}

/**
 * Shows a list of choices, any of which may be taken.
 * @param {{ field: string, label: string, options: string[], values: Values, help: unknown }} props
 */
function Choices({ field, label, options, values, help }) {
  const taken = (values.value[field] ?? '').split(',').filter((one) => one !== '');
  /** @param {string} option */
  const toggle = (option) => {
    const now = options.filter((one) => (one === option ? !taken.includes(one) : taken.includes(one)));
    values.value = { ...values.value, [field]: now.join(',') };
  };
  return html`<fieldset><legend class="label">${label}</legend>${options.map((option) => html`<label><input type="checkbox" checked=${taken.includes(option)} onChange=${() => toggle(option)} />${option}</label>`)}${help}</fieldset>`;
}

/** @param {string} field such as "params.hls_name" */
function labelOf(field) {
  const name = field.slice(field.indexOf('.') + 1).replaceAll('_', ' ');
  return name.replace(/\b(?:hls|dash)\b/g, (found) => found.toUpperCase()).replace(/^frag\b/, 'fragment');
}

/**
 * Shows a description of the API, in which names of fields stand between backticks.
 * @param {string} text
 */
export function withCode(text) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}
