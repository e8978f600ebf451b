import type { z } from 'zod';
import { AppError } from '#errors/app-error.ts';

type Issue = z.core.$ZodIssue;

/** The error that tells a caller what is wrong with a request body, from what the schema found first. */
export function requestError({ issues }: z.core.$ZodError): AppError {
  const [issue] = issues;
  if (issue === undefined) throw new Error('a failed validation names no issue');
  const path = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  const inputIndex = inputIndexOf(path);
  const field = path.length === 0 ? null : fieldPath(path);
  return new AppError(
    'REQUEST_INVALID',
    { field, problem: problemOf(issue) },
    { ...(field !== null && { field }), ...(inputIndex !== null && { inputIndex }) },
  );
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
function problemOf(issue: Issue): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'is not known here. Check the spelling, or leave it out';
    case 'invalid_type':
      return typeProblem(issue);
    case 'invalid_union':
      return `must be one of ${quotedList('options' in issue ? issue.options : [])}`;
    case 'invalid_value':
      return `must be one of ${quotedList(issue.values)}`;
    case 'too_small':
      return smallProblem(issue);
    case 'too_big':
      return issue.origin === 'string' ? `is longer than ${issue.maximum} characters` : `is above ${issue.maximum}`;
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
function typeProblem(issue: z.core.$ZodIssueInvalidType): string {
  if (issue.input === undefined) return 'is missing';
  return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`;
}

function smallProblem({ origin, minimum }: z.core.$ZodIssueTooSmall): string {
  if (origin === 'array') return `must hold at least ${minimum} ${minimum === 1 ? 'entry' : 'entries'}`;
  return origin === 'string' ? 'is empty' : `must be at least ${minimum}`;
}

function quotedList(values: readonly unknown[]): string {
  return values.map((value) => `"${String(value)}"`).join(', ');
}

/** Parses a value by a schema. Throws what `requestError` makes of its first problem. */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value, { reportInput: true });
  if (!result.success) throw requestError(result.error);
  return result.data;
}
