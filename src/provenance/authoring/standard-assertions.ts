import { z } from 'zod';

/** The ABNF of labels (C2PA 2.2, section 6.2): components of letters, digits, "-" and "_", of which the first is a letter or a digit. */
export const NAMESPACED_LABEL = /^[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9][A-Za-z0-9_-]*)+$/;

/** The namespaces whose labels are defined by C2PA and CAWG. Their ABNF knows no case. */
const STANDARD_NAMESPACE = /^(?:c2pa|cawg)\./i;

const metadata = z.looseObject({ '@context': z.record(z.string(), z.unknown()) });

const trainingMining = z.looseObject({
  entries: z
    .record(
      z.string().regex(NAMESPACED_LABEL),
      z.looseObject({ use: z.enum(['allowed', 'notAllowed', 'constrained']), constraint_info: z.string().optional() }),
    )
    .refine((entries) => Object.keys(entries).length > 0, 'holds no entry'),
});

/** Byte strings have no form in JSON: an array of numbers or text. */
const bytes = z.union([z.array(z.int().min(0).max(255)).min(1), z.string().min(1)]);

const softBinding = z.looseObject({
  alg: z.string().regex(NAMESPACED_LABEL),
  blocks: z.array(z.looseObject({ scope: z.looseObject({}), value: bytes })).min(1),
});

const assetReference = z.looseObject({
  references: z.array(z.looseObject({ reference: z.looseObject({ uri: z.url() }) })).min(1),
});

/**
 * The standard assertions that a request may state, with the least that the specifications ask of their content; the rest
 * is left to the readers. All of them are statements about the content that need no key and no hash. What is not listed
 * is made by this service (bindings, actions, ingredients, time-stamps), is signed by somebody else (`cawg.identity`,
 * `c2pa.session-keys`), holds binary data, or has readers fetch what a hash in it names.
 */
const STATABLE: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['c2pa.asset-ref', assetReference],
  ['c2pa.metadata', metadata],
  ['c2pa.soft-binding', softBinding],
  ['c2pa.training-mining', trainingMining],
  ['cawg.metadata', metadata],
  ['cawg.training-mining', trainingMining],
]);

/** Returns why a request may not state an assertion of this label; null where it may. */
export function standardLabelProblem(label: string): string | null {
  if (!STANDARD_NAMESPACE.test(label) || STATABLE.has(label)) return null;
  return `of the labels in "c2pa." and "cawg.", a request may state only ${[...STATABLE.keys()].join(', ')}`;
}

/** Returns what is wrong with the content of a standard assertion; null where nothing is, or where the label is another's. */
export function standardContentProblem(label: string, data: unknown): string | null {
  const issue = STATABLE.get(label)?.safeParse(data).error?.issues[0];
  if (issue === undefined) return null;
  const at = issue.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `its content is not what the specification defines for it (data${at}: ${issue.message})`;
}
