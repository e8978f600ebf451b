import { z } from 'zod';
import { namespacedLabel } from '#contract/request.ts';
import { MAX_ASSERTIONS } from '#contract/signing.ts';
import { fieldPath, problemOf } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { type CustomAssertion, OWN_NAMESPACE, type StatedAction } from '../manifest-request.ts';

const MAX_LABEL_CHARACTERS = 255;
/** Limits the nesting of arrays and objects. The SDK accepts 126 levels, of which the manifest around the data needs some. */
const MAX_DEPTH = 100;
/** Limits the data of all assertions together, as JSON. Every output carries it, and every init segment of a publication. */
const MAX_DATA_BYTES = 8 * 1024 * 1024;
/** Limits the values of all assertions together. The SDK needs about a kilobyte of memory for each. */
const MAX_VALUES = 100_000;
/** Limits all actions of a request together, as JSON. */
const MAX_ACTIONS_BYTES = 1024 * 1024;
const MAX_SHOWN_CHARACTERS = 80;

const VERSION_ENDING = /\.v\d+$/;

/**
 * Checks assertions without the SDK. Returns the size of the data of each as JSON, in bytes. Throws `ASSERTIONS_REFUSED`, `ASSERTION_LABEL_REFUSED` or `ASSERTION_DATA_REFUSED`,
 * with the field below `params.assertions`, for the first that breaks a rule.
 */
export function requireFitAssertions(assertions: readonly CustomAssertion[]): number[] {
  if (assertions.length > MAX_ASSERTIONS) {
    const problem = `there are ${assertions.length}, and ${MAX_ASSERTIONS} are allowed`;
    throw new AppError('ASSERTIONS_REFUSED', { problem }, { field: 'params.assertions' });
  }
  const labels = new Set<string>();
  let valueCount = 0;
  for (const [index, { label, data }] of assertions.entries()) {
    const field = `params.assertions[${index}]`;
    const unfitLabel = labelProblem(label) ?? (labels.has(label) ? 'it is there twice' : null);
    if (unfitLabel !== null) {
      const details = { label: shortened(label), problem: unfitLabel };
      throw new AppError('ASSERTION_LABEL_REFUSED', details, { field: `${field}.label` });
    }
    const shape = shapeOf(data);
    valueCount += shape.valueCount;
    const unfitData =
      shapeProblem({ depth: shape.depth, valueCount }) ??
      brokenTextProblem(data) ??
      standardContentProblem(label, data);
    if (unfitData !== null) {
      throw new AppError('ASSERTION_DATA_REFUSED', { label, problem: unfitData }, { field: `${field}.data` });
    }
    labels.add(label);
  }
  return requireFitSize(assertions);
}

/**
 * Checks actions without the SDK. Throws `ACTIONS_REFUSED`, with the field in `params.actions`, for the first whose content
 * breaks a limit of assertions, or whose watermark is bound to no soft binding (C2PA 2.4 §18.15.5).
 */
export function requireFitActions(actions: readonly StatedAction[], assertions: readonly CustomAssertion[]): void {
  let valueCount = 0;
  for (const [index, action] of actions.entries()) {
    const shape = shapeOf(action);
    valueCount += shape.valueCount;
    const problem =
      shapeProblem({ depth: shape.depth, valueCount }) ??
      brokenTextProblem(action) ??
      watermarkProblem(action, assertions);
    if (problem !== null) throw new AppError('ACTIONS_REFUSED', { problem }, { field: `params.actions[${index}]` });
  }
  const sizeBytes = Buffer.byteLength(JSON.stringify(actions));
  if (sizeBytes <= MAX_ACTIONS_BYTES) return;
  const problem = `they have ${sizeBytes} bytes as JSON, and ${MAX_ACTIONS_BYTES} are allowed`;
  throw new AppError('ACTIONS_REFUSED', { problem }, { field: 'params.actions' });
}

function watermarkProblem({ action }: StatedAction, assertions: readonly CustomAssertion[]): string | null {
  const isMissing =
    action === 'c2pa.watermarked.bound' && assertions.every(({ label }) => label !== 'c2pa.soft-binding');
  return isMissing ? `${action} needs the assertion c2pa.soft-binding in params.assertions` : null;
}

function requireFitSize(assertions: readonly CustomAssertion[]): number[] {
  // Depth is bounded by now, and `null` stands for data that JSON does not have.
  const sizesBytes = assertions.map(({ data }) => Buffer.byteLength(JSON.stringify(data) ?? 'null'));
  const totalBytes = sizesBytes.reduce((sum, sizeBytes) => sum + sizeBytes, 0);
  if (totalBytes <= MAX_DATA_BYTES) return sizesBytes;
  const problem = `their data has ${totalBytes} bytes as JSON, and ${MAX_DATA_BYTES} are allowed`;
  throw new AppError('ASSERTIONS_REFUSED', { problem }, { field: 'params.assertions' });
}

function labelProblem(label: string): string | null {
  if (label.length > MAX_LABEL_CHARACTERS)
    return `it has ${label.length} characters; ${MAX_LABEL_CHARACTERS} are allowed`;
  if (!namespacedLabel.test(label)) {
    return 'it must be two or more parts with dots between them, each of letters, digits, "_" and "-" and beginning with a letter or a digit';
  }
  if (VERSION_ENDING.test(label)) return 'an ending such as ".v2" does not survive: readers take it for a version';
  if (label.includes('__')) return '"__" does not survive: readers take what follows for a running number';
  return standardLabelProblem(label);
}

/** The nesting depth of data, and the number of its values. */
interface Shape {
  readonly depth: number;
  readonly valueCount: number;
}

/** Measures data level by level, because it may be hostile, and stops at a limit. */
function shapeOf(data: unknown): Shape {
  let level: unknown[] = [data];
  let valueCount = 0;
  for (let depth = 0; ; depth += 1) {
    valueCount += level.length;
    const containers = level.filter(isContainer);
    if (containers.length === 0 || shapeProblem({ depth, valueCount }) !== null) return { depth, valueCount };
    level = containers.flatMap((container) => Object.values(container));
    if (level.length === 0) return { depth: depth + 1, valueCount };
  }
}

function shapeProblem({ depth, valueCount }: Shape): string | null {
  if (depth > MAX_DEPTH) return `its data is nested deeper than ${MAX_DEPTH} levels`;
  if (valueCount > MAX_VALUES) return `the data of the assertions holds more than ${MAX_VALUES} values in all`;
  return null;
}

/** Names the first text that has no UTF-8 form: a manifest would hold another character in its place. The depth is limited. */
function brokenTextProblem(data: unknown): string | null {
  const path = pathToBrokenText(data, 'data');
  return path === null ? null : `the text at ${path} holds half of a surrogate pair, which is no character`;
}

function pathToBrokenText(value: unknown, path: string): string | null {
  if (typeof value === 'string') return value.isWellFormed() ? null : path;
  if (!isContainer(value)) return null;
  for (const [key, item] of Object.entries(value)) {
    const itemPath = Array.isArray(value) ? `${path}[${key}]` : `${path}.${shortened(key)}`;
    const found = key.isWellFormed() ? pathToBrokenText(item, itemPath) : `a key of ${path}`;
    if (found !== null) return found;
  }
  return null;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function shortened(label: string): string {
  return label.length > MAX_SHOWN_CHARACTERS ? `${label.slice(0, MAX_SHOWN_CHARACTERS)}…` : label;
}

/** The namespaces whose labels are defined by C2PA and CAWG. Their ABNF knows no case. */
const STANDARD_NAMESPACE = /^(?:c2pa|cawg)\./i;

const metadata = z.looseObject({ '@context': z.record(z.string(), z.unknown()) });

const trainingMining = z.looseObject({
  entries: z
    .record(
      z.string().regex(namespacedLabel),
      z.looseObject({ use: z.enum(['allowed', 'notAllowed', 'constrained']), constraint_info: z.string().optional() }),
    )
    .refine((entries) => Object.keys(entries).length > 0, 'holds no entry'),
});

/** A byte string, which JSON has as an array of numbers or as text. */
const bytes = z.union([z.array(z.int().min(0).max(255)).min(1), z.string().min(1)], 'must be text or a list of bytes');

const softBinding = z.looseObject({
  alg: z.string().regex(namespacedLabel, 'must be a name such as com.example.watermark'),
  blocks: z.array(z.looseObject({ scope: z.looseObject({}), value: bytes })).min(1),
});

const assetReference = z.looseObject({
  references: z.array(z.looseObject({ reference: z.looseObject({ uri: z.url('must be a URL') }) })).min(1),
});

/**
 * The standard assertions that a request may state, with the least that the specifications ask of their content; the rest
 * is left to the readers. All of them describe the content, and need no key and no hash. An assertion that is not listed
 * is made by this service (bindings, actions, ingredients, time-stamps), is signed by somebody else (`cawg.identity`,
 * `c2pa.session-keys`), holds binary data, or has readers fetch what a hash in it names.
 */
const STATABLE: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['c2pa.asset-ref', assetReference],
  ['c2pa.metadata', metadata],
  ['c2pa.soft-binding', softBinding],
  ['c2pa.training-mining', trainingMining],
  ['cawg.metadata', metadata],
  ['cawg.training-mining', trainingMining],
]);

/** Returns why a request may not state an assertion of this label; null where it may. */
function standardLabelProblem(label: string): string | null {
  if (label.toLowerCase().startsWith(OWN_NAMESPACE))
    return `labels in "${OWN_NAMESPACE}" are made by the service alone`;
  if (!STANDARD_NAMESPACE.test(label) || STATABLE.has(label)) return null;
  if (label === 'c2pa.actions') return 'actions are stated in params.actions';
  return `of the labels in "c2pa." and "cawg.", a request may state only ${[...STATABLE.keys()].join(', ')}`;
}

/**
 * Returns the problem with the content of a standard assertion; null where there is none, or where the label is not
 * a standard one.
 */
function standardContentProblem(label: string, data: unknown): string | null {
  const issue = STATABLE.get(label)?.safeParse(data).error?.issues[0];
  if (issue === undefined) return null;
  const at = fieldPath(['data', ...issue.path]);
  return `its content is not what the specification defines for it (${at} ${problemOf(issue, data)})`;
}
