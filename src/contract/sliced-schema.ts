import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { validate } from './validate.ts';

/**
 * So many entries of a list are checked in one go. A mistake in them ends the check, so no more entries than these are
 * ever looked at for mistakes that nobody is told.
 */
const ENTRIES_AT_ONCE = 500;

/** Where a list lies in a value, and how its entries are checked. */
interface ListInside {
  readonly path: readonly string[];
  readonly entries: z.ZodArray;
}

/** A schema in two: the frame takes anything as an entry of a list, and lists are checked apart from it. */
interface SlicedSchema {
  readonly frame: z.ZodType;
  readonly lists: readonly ListInside[];
}

const slicedSchemas = new WeakMap<z.ZodType, SlicedSchema>();

/**
 * Parses a value as `validate` does, its lists in slices between which other work goes on: a body of megabytes may hold
 * 100,000s of entries, and every one of them may be wrong. The value must not change meanwhile.
 */
export async function validateInSlices(schema: z.ZodType, value: unknown): Promise<unknown> {
  const { frame, lists } = slicedSchema(schema);
  const parsed = validate(frame, value);
  for (const { path, entries } of lists) await parseEntries(entries, listAt(parsed, path), path);
  return parsed;
}

/** Puts what its entries are parsed to into a list. */
async function parseEntries(entries: z.ZodArray, list: unknown[], path: readonly string[]): Promise<void> {
  for (let start = 0; start < list.length; start += ENTRIES_AT_ONCE) {
    if (start > 0) await setImmediate();
    const slice = validate(entries, list.slice(start, start + ENTRIES_AT_ONCE), { path, start });
    for (const [index, entry] of slice.entries()) list[start + index] = entry;
  }
}

/** The list at a path of what the frame has parsed; an empty one where the value has none. */
function listAt(parsed: unknown, path: readonly string[]): unknown[] {
  const list = path.reduce<unknown>((inside, key) => (inside as Record<string, unknown> | null)?.[key], parsed);
  return Array.isArray(list) ? list : [];
}

function slicedSchema(schema: z.ZodType): SlicedSchema {
  const known = slicedSchemas.get(schema);
  if (known !== undefined) return known;
  const lists: ListInside[] = [];
  const sliced = { frame: frameOf(schema, [], lists), lists };
  slicedSchemas.set(schema, sliced);
  return sliced;
}

/** A schema that takes anything as an entry of a list; which lists there are is added to `lists`. */
function frameOf(schema: z.ZodType, path: readonly string[], lists: ListInside[]): z.ZodType {
  if (schema instanceof z.ZodArray) {
    lists.push({ path, entries: z.array(schema.element as z.ZodType) });
    return schema.clone({ ...schema.def, element: z.unknown() });
  }
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return z.core.clone(schema, { ...schema.def, innerType: frameOf(schema.unwrap() as z.ZodType, path, lists) });
  }
  if (!(schema instanceof z.ZodObject)) return schema;
  const shape = Object.entries(schema.shape).map(([key, field]) => [
    key,
    frameOf(field as z.ZodType, [...path, key], lists),
  ]);
  return schema.clone({ ...schema.def, shape: Object.fromEntries(shape) });
}
