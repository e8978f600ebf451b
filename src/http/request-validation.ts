import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { validateInSlices } from '#contract/sliced-schema.ts';
import { validate } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';

/** Carries what a schema found through Fastify, which writes properties of its own onto a validation error. */
export class RefusedRequest extends Error {
  readonly refusal: AppError;

  constructor(refusal: AppError) {
    super(refusal.message, { cause: refusal });
    this.refusal = refusal;
  }
}

/**
 * Validates requests with the schemas of the contract. Bodies go first, and on their own: Fastify's validators either
 * hold the thread or cannot say what a body was parsed to.
 */
export function validateRequests(app: FastifyInstance): void {
  app.addHook('preValidation', async (request) => {
    const body = request.routeOptions.schema?.body as z.ZodType | undefined;
    if (body !== undefined) request.body = await validateInSlices(body, request.body);
  });
  app.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => {
    if (httpPart === 'body') return (body) => ({ value: body });
    return (part) => validated(schema, part);
  });
}

function validated(schema: z.ZodType, part: unknown): { value: unknown } | { error: Error } {
  try {
    return { value: validate(schema, part) };
  } catch (error) {
    if (error instanceof AppError) return { error: new RefusedRequest(error) };
    throw error;
  }
}
