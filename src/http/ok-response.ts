import type { z } from 'zod';

/** A response of JSON with a description of its own. */
export function ok(schema: z.ZodType, description: string): object {
  return { description, content: { 'application/json': { schema } } };
}
