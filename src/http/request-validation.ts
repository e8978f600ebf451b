import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { requestError } from '#contract/validate.ts';
import type { AppError } from '#errors/app-error.ts';

/** Carries what a schema found through Fastify, which writes properties of its own onto a validation error. */
export class RefusedBody extends Error {
  readonly refusal: AppError;

  constructor(refusal: AppError) {
    super(refusal.message, { cause: refusal });
    this.refusal = refusal;
  }
}

/** Validates request bodies with the schemas of the contract. */
export const validateWithContract: FastifySchemaCompiler<z.ZodType> =
  ({ schema }) =>
  (data) => {
    const result = schema.safeParse(data, { reportInput: true });
    return result.success ? { value: result.data } : { error: new RefusedBody(requestError(result.error)) };
  };
