import { z } from 'zod';

export const apiErrorResponse = z
  .object({
    error: z.object({
      code: z.string().describe('A code of the error table.'),
      message: z.string().describe('What was wrong and what to do, for people.'),
      details: z
        .object({
          field: z.string().nullish().describe('A path into the request body, such as `params.assertions[0].label`.'),
          input_index: z.int().min(0).nullish().describe('The input at fault, counted from zero.'),
          input_indexes: z
            .array(z.int().min(0))
            .readonly()
            .exactOptional()
            .describe('All inputs at fault, where there may be several.'),
        })
        .nullish(),
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
          details: { field: 'params.assertions[0].label' },
        },
      },
    ],
  });
export type ApiErrorResponse = z.infer<typeof apiErrorResponse>;
