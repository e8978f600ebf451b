import type { z } from 'zod';
import { configSchema, innerSchema } from './config-schema.ts';

const PREFIX = 'SERVICE__';

/** One override from the environment: the key's path, and the value in the type that the key has. */
export interface EnvironmentOverride {
  readonly variable: string;
  readonly path: readonly string[];
  readonly value: unknown;
}

/**
 * Reads every `SERVICE__SECTION__KEY` variable, case-insensitive. Names without a key are returned with the path they
 * spell, so that the schema refuses them as it refuses unknown keys of a file.
 */
export function environmentOverrides(env: NodeJS.ProcessEnv): EnvironmentOverride[] {
  return Object.entries(env)
    .filter(([variable, value]) => variable.toUpperCase().startsWith(PREFIX) && value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([variable, value = '']) => {
      const path = variable.slice(PREFIX.length).toLowerCase().split('__');
      return { variable, path, value: typed(value, schemaAt(path)) };
    });
}

function schemaAt(path: readonly string[]): z.core.$ZodType | undefined {
  return path.reduce<z.core.$ZodType | undefined>((schema, key) => {
    const shape = schema && (innerSchema(schema)._zod.def as { shape?: Record<string, z.core.$ZodType> }).shape;
    return shape !== undefined && Object.hasOwn(shape, key) ? shape[key] : undefined;
  }, configSchema);
}

/** A variable's text as the key's type; what does not fit stays text, and the schema says what it should be. */
function typed(value: string, schema: z.core.$ZodType | undefined): unknown {
  const type = schema && innerSchema(schema)._zod.def.type;
  if (type === 'number') return /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  if (type === 'boolean') return /^true$/i.test(value) ? true : /^false$/i.test(value) ? false : value;
  if (type === 'array')
    return value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  return value;
}
