import type { z } from 'zod';
import { AppError } from '#errors/app-error.ts';

type Issue = z.core.$ZodIssue;

/** A value that is the entries of a list from `start` on; `path` is where the list lies in what the caller sent. */
export interface SliceLocation {
  readonly path: readonly string[];
  readonly start: number;
}

/** The error that tells a caller what is wrong with a value, from what the schema found first. */
function requestError({ issues }: z.core.$ZodError, value: unknown, location?: SliceLocation): AppError {
  const [issue] = issues;
  if (issue === undefined) throw new Error('a failed validation names no issue');
  const steps = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  const path = location === undefined ? steps : stepsFrom(location, steps);
  const inputIndex = inputIndexOf(path);
  const field = path.length === 0 ? null : shortened(fieldPath(path));
  return new AppError(
    'REQUEST_INVALID',
    { field, problem: problemOf(issue, value) },
    { ...(field !== null && { field }), ...(inputIndex !== null && { inputIndex }) },
  );
}

function stepsFrom({ path, start }: SliceLocation, [index, ...steps]: readonly PropertyKey[]): readonly PropertyKey[] {
  return index === undefined ? path : [...path, start + Number(index), ...steps];
}

/** A caller may make up names of any length; errors repeat the start of one. */
const FIELD_MAX_LENGTH = 500;

function shortened(field: string): string {
  return field.length <= FIELD_MAX_LENGTH ? field : `${field.slice(0, FIELD_MAX_LENGTH)}…`;
}

/** Writes a path as in `params.assertions[0].label`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((written, step) => {
    if (typeof step === 'number') return `${written}[${step}]`;
    return written === '' ? String(step) : `${written}.${String(step)}`;
  }, '');
}

function inputIndexOf([first, second]: readonly PropertyKey[]): number | null {
  return first === 'inputs' && typeof second === 'number' ? second : null;
}

/** The rest of a sentence that starts with the field. */
function problemOf(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'is not known here. Check the spelling, or leave it out';
    case 'invalid_type':
      return typeProblem(issue, value);
    case 'invalid_union':
      return 'options' in issue ? `must be one of ${quotedList(issue.options)}` : issue.message;
    case 'invalid_value':
      return `must be one of ${quotedList(issue.values)}`;
    case 'too_small':
      return smallProblem(issue);
    case 'too_big':
      return largeProblem(issue);
    default:
      return issue.message;
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

/** Schemas report a missing field as one of the wrong type; a JSON body holds no `undefined`, so the two differ here. */
function typeProblem({ path, expected }: z.core.$ZodIssueInvalidType, value: unknown): string {
  const given = path.reduce<unknown>((inside, key) => (inside as Record<PropertyKey, unknown>)[key], value);
  return given === undefined ? 'is missing' : `must be ${TYPE_NAMES[expected] ?? expected}`;
}

function smallProblem({ origin, minimum }: z.core.$ZodIssueTooSmall): string {
  if (origin === 'array') return `must hold at least ${minimum} ${minimum === 1 ? 'entry' : 'entries'}`;
  return origin === 'string' ? 'is empty' : `must be at least ${minimum}`;
}

function largeProblem({ origin, maximum }: z.core.$ZodIssueTooBig): string {
  if (origin === 'array') return `holds more than ${maximum} entries`;
  return origin === 'string' ? `is longer than ${maximum} characters` : `is above ${maximum}`;
}

function quotedList(values: readonly unknown[]): string {
  return values.map((value) => `"${String(value)}"`).join(', ');
}

/** Parses a value by a schema. Throws REQUEST_INVALID, which tells the first problem and where it lies. */
export function validate<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  location?: SliceLocation,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (!result.success) throw requestError(result.error, value, location);
  return result.data;
}
