import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { AppError, MAX_PROBLEMS } from '#errors/app-error.ts';

type Issue = z.core.$ZodIssue;

/** A value that is the entries of a list from `start` on; `path` is where the list lies in what the caller sent. */
interface SliceLocation {
  readonly path: readonly string[];
  readonly start: number;
}

/** Returns the errors that tell a caller what a schema found wrong with a value: one for each field, `MAX_PROBLEMS` at most. */
function requestErrors({ issues }: z.core.$ZodError, value: unknown, location?: SliceLocation): AppError[] {
  return issues
    .slice(0, MAX_PROBLEMS)
    .flatMap((issue) => pathsOf(issue).map((path) => requestError(issue, path, value, location)));
}

function pathsOf(issue: Issue): readonly (readonly PropertyKey[])[] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
}

function requestError(
  issue: Issue,
  steps: readonly PropertyKey[],
  value: unknown,
  location: SliceLocation | undefined,
): AppError {
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
const MAX_FIELD_LENGTH = 500;

function shortened(field: string): string {
  return field.length <= MAX_FIELD_LENGTH ? field : `${field.slice(0, MAX_FIELD_LENGTH)}…`;
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

/** Returns the rest of a sentence that starts with the field. */
export function problemOf(issue: Issue, value: unknown): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'is not known here. Check the spelling, or leave it out';
    case 'invalid_type':
      return typeProblem(issue, value);
    case 'invalid_union':
      return 'options' in issue ? `must be one of ${quotedList(issue.options)}` : issue.message;
    case 'invalid_key':
      return 'has a name that cannot be used here';
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

/** Types by the names that the schemas give them, for messages. */
export const TYPE_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    array: 'a list',
    boolean: 'true or false',
    int: 'a whole number',
    number: 'a number',
    object: 'an object',
    record: 'an object',
    string: 'a string',
  }),
);

/** Schemas report a missing field as one of the wrong type; a JSON body holds no `undefined`, so the two differ here. */
function typeProblem({ path, expected }: z.core.$ZodIssueInvalidType, value: unknown): string {
  const given = path.reduce<unknown>((inside, key) => (inside as Record<PropertyKey, unknown>)[key], value);
  return given === undefined ? 'is missing' : `must be ${TYPE_NAMES.get(expected) ?? expected}`;
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

/** Parses a value by a schema. Throws REQUEST_INVALID, which tells the first problem and where it lies, and has the others. */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const problems: AppError[] = [];
  const parsed = parse(schema, value, problems);
  AppError.throwFirst(problems);
  return parsed as z.output<Schema>;
}

/** Parses a value by a schema. Adds what is wrong with it to `problems`, up to `MAX_PROBLEMS`, and returns undefined then. */
function parse<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  problems: AppError[],
  location?: SliceLocation,
): z.output<Schema> | undefined {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const found = requestErrors(result.error, value, location);
  problems.push(...found.slice(0, MAX_PROBLEMS - problems.length));
  return undefined;
}

/**
 * Entries of a list that are validated without yielding. Zod reports every mistake of what it is given, so a list of
 * nothing but mistakes costs one slice.
 */
const LIST_SLICE_LENGTH = 500;

/** A list in a schema, by the path that leads to it. */
interface ListSchema {
  readonly path: readonly string[];
  readonly entries: z.ZodType<unknown[]>;
  /** Validates the number of entries and nothing of them. */
  readonly bounds: z.ZodType;
}

const listsBySchema = new WeakMap<z.ZodType, readonly ListSchema[]>();

/**
 * Validates a value as `validate` does, and yields to the event loop between slices of its lists: a body of megabytes may
 * hold hundreds of thousands of entries. The value must not change meanwhile. Throws REQUEST_INVALID.
 */
export async function validateInSlices(schema: z.ZodType, value: unknown): Promise<unknown> {
  const lists = listsBySchema.get(schema) ?? listsIn(schema, []);
  listsBySchema.set(schema, lists);
  const problems: AppError[] = [];
  const first = lists.reduce((shortened, { path }) => withFirstSlice(shortened, path), value);
  const parsed = parse(schema, first, problems);
  for (const list of lists) await parseRest(list, listAt(value, list.path), listAt(parsed, list.path), problems);
  AppError.throwFirst(problems);
  return parsed;
}

/** Parses the entries after the first slice, appends them to those that were parsed, and adds what is wrong to `problems`. */
async function parseRest(
  { path, entries, bounds }: ListSchema,
  given: unknown[],
  parsed: unknown[],
  problems: AppError[],
): Promise<void> {
  if (given.length <= LIST_SLICE_LENGTH) return;
  if (parse(bounds, given, problems, { path, start: 0 }) === undefined) return;
  for (let start = LIST_SLICE_LENGTH; start < given.length; start += LIST_SLICE_LENGTH) {
    if (problems.length >= MAX_PROBLEMS) return;
    await setImmediate();
    parsed.push(...(parse(entries, given.slice(start, start + LIST_SLICE_LENGTH), problems, { path, start }) ?? []));
  }
}

/** Copies a value with the list at a path cut to its first slice. */
function withFirstSlice(value: unknown, [key, ...path]: readonly string[]): unknown {
  if (key === undefined) return Array.isArray(value) ? value.slice(0, LIST_SLICE_LENGTH) : value;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return value;
  return { ...value, [key]: withFirstSlice((value as Record<string, unknown>)[key], path) };
}

/** Returns the list at a path; an empty one where there is none. */
function listAt(value: unknown, path: readonly string[]): unknown[] {
  const list = path.reduce<unknown>((inside, key) => (inside as Record<string, unknown> | null)?.[key], value);
  return Array.isArray(list) ? list : [];
}

/** Finds the lists that are reached through objects alone, optional and nullable ones included. */
function listsIn(schema: z.ZodType, path: readonly string[]): readonly ListSchema[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return listsIn(schema.unwrap() as z.ZodType, path);
  }
  if (schema instanceof z.ZodArray) {
    return [{ path, entries: z.array(schema.element as z.ZodType), bounds: boundsOf(schema) }];
  }
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([key, field]) => listsIn(field as z.ZodType, [...path, key]));
}

/** Makes a schema of the number of entries; zod tells the bounds of a list in its JSON Schema. */
function boundsOf(list: z.ZodArray): z.ZodType {
  const { minItems = 0, maxItems = Number.MAX_SAFE_INTEGER } = z.toJSONSchema(list, { unrepresentable: 'any' });
  return z.array(z.unknown()).min(minItems).max(maxItems);
}
