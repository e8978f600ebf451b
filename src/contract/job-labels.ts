import { z } from 'zod';

/** The longest `client_reference` and value of a label, in Unicode code points, which JSON Schema counts. */
const MAX_VALUE_LENGTH = 256;

/** Labels of one job. */
const MAX_LABELS = 16;

/** The name of a label. It holds no "=", which separates it from its value in a filter. */
const LABEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;

const UNSTORABLE = 'holds a control character or a broken character';

/** Returns true for text that both databases store and every page shows. */
function isPlainText(value: string): boolean {
  return value.isWellFormed() && !/\p{Cc}/u.test(value);
}

export const clientReference = z
  .string()
  .min(1)
  .max(MAX_VALUE_LENGTH)
  .refine(isPlainText, UNSTORABLE)
  .describe(
    `What the caller calls the job, such as the number of an order: 1 to ${MAX_VALUE_LENGTH} characters. It need not be unique.`,
  );

export type JobLabels = Readonly<Record<string, string>>;

const labelValueSchema = { type: 'string', maxLength: MAX_VALUE_LENGTH } as const;

/** No record of zod, which drops a member named `__proto__`, and validates thousands of members before it counts them. */
export const jobLabels = z
  .custom<JobLabels>()
  .superRefine((value, context) => {
    const problem = labelsProblem(value);
    if (problem !== null) context.addIssue({ code: 'custom', ...problem });
  })
  .meta({
    type: 'object',
    maxProperties: MAX_LABELS,
    propertyNames: { pattern: LABEL_NAME.source },
    additionalProperties: labelValueSchema,
    description: `Names and values to find the job by: at most ${MAX_LABELS}. A name has 1 to 63 letters, digits, ".", "_", "/" and "-", a value at most ${MAX_VALUE_LENGTH} characters.`,
    examples: [{ project: 'evening-news', desk: '4' }],
  });

/** Returns the first problem of labels and where it is; null where there is none. */
function labelsProblem(value: unknown): { path: string[]; message: string } | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { path: [], message: 'must be an object of names and values' };
  }
  const labels = Object.entries(value);
  if (labels.length > MAX_LABELS) return { path: [], message: `holds more than ${MAX_LABELS} labels` };
  for (const [name, text] of labels) {
    const problem = LABEL_NAME.test(name)
      ? valueProblem(text)
      : 'must be named by 1 to 63 letters, digits, ".", "_", "/" and "-"';
    if (problem !== null) return { path: [name], message: problem };
  }
  return null;
}

function valueProblem(value: unknown): string | null {
  if (typeof value !== 'string') return 'must be a string';
  if (value.length > 2 * MAX_VALUE_LENGTH || [...value].length > MAX_VALUE_LENGTH)
    return `is longer than ${MAX_VALUE_LENGTH} characters`;
  return isPlainText(value) ? null : UNSTORABLE;
}

/** A label as the query of a list names it: `<name>=<value>`. */
export const labelFilter = z
  .string()
  .refine((text) => labelsProblem(Object.fromEntries([splitLabel(text)])) === null, {
    error: 'must be the name and the value of a label, joined by "=", such as project=evening-news',
  })
  .transform(labelOf)
  .describe('Only jobs with this label: `<name>=<value>`.');

function labelOf(text: string): { readonly name: string; readonly value: string } {
  const [name, value] = splitLabel(text);
  return { name, value };
}

/** Splits at the first "="; a value may hold more of them. Without one, the name is empty, which none is. */
function splitLabel(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  return at === -1 ? ['', text] : [text.slice(0, at), text.slice(at + 1)];
}
