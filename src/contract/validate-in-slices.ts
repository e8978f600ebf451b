import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { validate } from './validate.ts';

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
  const parsed = validate(
    schema,
    lists.reduce((shortened, { path }) => withFirstSlice(shortened, path), value),
  );
  for (const list of lists) await validateRest(list, listAt(value, list.path), listAt(parsed, list.path));
  return parsed;
}

/** Validates the entries after the first slice, and appends them to those that were parsed. */
async function validateRest({ path, entries, bounds }: ListSchema, given: unknown[], parsed: unknown[]): Promise<void> {
  if (given.length <= LIST_SLICE_LENGTH) return;
  validate(bounds, given, { path, start: 0 });
  for (let start = LIST_SLICE_LENGTH; start < given.length; start += LIST_SLICE_LENGTH) {
    await setImmediate();
    parsed.push(...validate(entries, given.slice(start, start + LIST_SLICE_LENGTH), { path, start }));
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
