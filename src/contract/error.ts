import { z } from 'zod';
import { MAX_PROBLEMS } from '#errors/app-error.ts';

const field = z.string().describe('A path into the request body, such as `params.assertions[0].label`.');
const inputIndex = z.int().min(0).describe('The input at fault, counted from zero.');

const reason = z.string().describe('A stable name of what was wrong, for programs.');

const problem = z.object({
  message: z.string().describe('What was wrong and what to do, for people.'),
  reason,
  field: field.exactOptional(),
  input_index: inputIndex.exactOptional(),
});

export const apiErrorResponse = z
  .object({
    error: z.object({
      code: z.string().describe('A code of the error table.'),
      message: z.string().describe('What was wrong and what to do, for people.'),
      details: z.object({
        reason,
        field: field.nullish(),
        input_index: inputIndex.nullish(),
        input_indexes: z
          .array(z.int().min(0))
          .readonly()
          .exactOptional()
          .describe('All inputs at fault, where there may be several.'),
        identities: z
          .array(z.string())
          .readonly()
          .exactOptional()
          .describe('The identities that the caller may sign with. Only where another was asked for.'),
        cause: z.string().exactOptional().describe('The reason for which a configuration cannot be reloaded.'),
        problems: z
          .array(problem)
          .max(MAX_PROBLEMS)
          .readonly()
          .exactOptional()
          .describe('All that was found wrong with the request, the first problem included. Of a 400 only.'),
      }),
    }),
  })
  .meta({
    id: 'ApiErrorResponse',
    description: 'The body of every error.',
    examples: [
      {
        error: {
          code: 'VALIDATION_FAILED',
          message: 'The field "params.assertions[0].label" is missing.',
          details: {
            field: 'params.assertions[0].label',
            reason: 'REQUEST_INVALID',
            problems: [
              {
                message: 'The field "params.assertions[0].label" is missing.',
                reason: 'REQUEST_INVALID',
                field: 'params.assertions[0].label',
              },
            ],
          },
        },
      },
    ],
  });
export type ApiErrorResponse = z.infer<typeof apiErrorResponse>;
