import { MAX_ASSERTIONS } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import type { CustomAssertion } from './manifest-author.ts';
import { NAMESPACED_LABEL, standardContentProblem, standardLabelProblem } from './standard-assertions.ts';

const MAX_LABEL_CHARACTERS = 255;
/** Of arrays and objects inside each other. The SDK takes 126, of which the manifest around the data needs some. */
const MAX_DEPTH = 100;
/** Of the data of all assertions together, as JSON. Every output carries it, and every init segment of a publication. */
const MAX_DATA_BYTES = 8 * 1024 * 1024;
/** Of all assertions together. The SDK needs about a kilobyte of memory for each. */
const MAX_VALUES = 100_000;
const MAX_SHOWN_CHARACTERS = 80;

const VERSION_ENDING = /\.v\d+$/;

/** What was found out about assertions that may be tried. */
export interface FitAssertions {
  /** The size of the data of each as JSON, in bytes. */
  readonly sizesBytes: readonly number[];
}

/**
 * Refuses what can be told to be wrong from the assertions themselves: the first AppError names the field, below
 * `params.assertions`.
 */
export function requireFitAssertions(assertions: readonly CustomAssertion[]): FitAssertions {
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
  return { sizesBytes: requireFitSize(assertions) };
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
  if (!NAMESPACED_LABEL.test(label)) {
    return 'it must be two or more parts with dots between them, each of letters, digits, "_" and "-" and beginning with a letter or a digit';
  }
  if (VERSION_ENDING.test(label)) return 'an ending such as ".v2" does not survive: readers take it for a version';
  if (label.includes('__')) return '"__" does not survive: readers take what follows for a running number';
  return standardLabelProblem(label);
}

/** How deep arrays and objects stand inside each other, and how many values there are in all. */
interface Shape {
  readonly depth: number;
  readonly valueCount: number;
}

/** Measures data level by level, as it may be hostile; stops where a bound is passed. */
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

/** Names the first text that has no UTF-8 form: a manifest would hold another character in its place. Depth is bounded by now. */
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
