import { AppError } from '#errors/app-error.ts';
import type { CustomAssertion } from './manifest-author.ts';

const MAX_LABEL_CHARACTERS = 255;
/** Of arrays and objects inside each other. The SDK takes 126, of which the manifest around the data needs some. */
const MAX_DEPTH = 100;
const MAX_SHOWN_CHARACTERS = 80;

/** Labels that the manifest itself needs; a second one would break it or pass for something that we say. */
const RESERVED_LABELS: readonly RegExp[] = [
  /^c2pa\.hash(\.|$)/,
  /^c2pa\.actions/,
  /^c2pa\.ingredient/,
  /^c2pa\.claim/,
  /^c2pa\.signature$/,
  /^c2pa\.time-stamp$/,
];

const LABEL_CHARACTERS = /^[A-Za-z0-9._-]+$/;
const VERSION_ENDING = /\.v\d+$/;

/**
 * Refuses what can be told to be wrong from the assertions themselves: the first AppError names the field, below
 * `params.assertions`.
 */
export function requireFitAssertions(assertions: readonly CustomAssertion[]): void {
  const labels = new Set<string>();
  for (const [index, { label, data }] of assertions.entries()) {
    const field = `params.assertions[${index}]`;
    const problem = labelProblem(label) ?? (labels.has(label) ? 'it is there twice' : null);
    if (problem !== null) {
      throw new AppError('ASSERTION_LABEL_REFUSED', { label: shortened(label), problem }, { field: `${field}.label` });
    }
    if (isDeeperThan(data, MAX_DEPTH)) {
      const tooDeep = `its data is nested deeper than ${MAX_DEPTH} levels`;
      throw new AppError('ASSERTION_DATA_REFUSED', { label, problem: tooDeep }, { field: `${field}.data` });
    }
    labels.add(label);
  }
}

function labelProblem(label: string): string | null {
  if (label.length > MAX_LABEL_CHARACTERS)
    return `it has ${label.length} characters; ${MAX_LABEL_CHARACTERS} are allowed`;
  if (!LABEL_CHARACTERS.test(label)) return 'it may hold only the characters A-Z, a-z, 0-9, ".", "_" and "-"';
  if (RESERVED_LABELS.some((reserved) => reserved.test(label)))
    return 'it is reserved for what the service itself asserts';
  if (VERSION_ENDING.test(label)) return 'an ending such as ".v2" does not survive: readers take it for a version';
  if (label.includes('__')) return '"__" does not survive: readers take what follows for a running number';
  return null;
}

/** Whether arrays and objects stand inside each other deeper than `limit`; level by level, as data may be hostile. */
function isDeeperThan(data: unknown, limit: number): boolean {
  let containers = [data].filter(isContainer);
  for (let depth = 0; containers.length > 0; depth += 1) {
    if (depth === limit) return true;
    containers = containers.flatMap((container) => Object.values(container)).filter(isContainer);
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function shortened(label: string): string {
  return label.length > MAX_SHOWN_CHARACTERS ? `${label.slice(0, MAX_SHOWN_CHARACTERS)}…` : label;
}
