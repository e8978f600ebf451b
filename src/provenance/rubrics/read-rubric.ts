import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { z } from 'zod';

/** Size limit of a rubric; the official ones have up to 30 kB. */
const MAX_RUBRIC_BYTES = 1024 * 1024;
const MAX_STATEMENTS = 1000;
/** A FIFO would be waited for. Links are followed: deployments mount files as links. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** A text in one language, or in several by their tags. */
const reportText = z.union([z.string(), z.record(z.string(), z.union([z.string(), z.record(z.string(), z.string())]))]);

const rubricHead = z.looseObject({
  rubric_metadata: z.looseObject({ name: z.string().optional(), version: z.string().optional() }),
  variables: z.record(z.string().startsWith('$'), z.unknown()).default({}),
  expressions: z.record(z.string().startsWith('_'), z.string()).default({}),
});

const rubricStatement = z.looseObject({
  id: z.string(),
  expression: z.string(),
  description: z.string().optional().catch(undefined),
  failIfMatched: z.boolean().optional(),
  warnIfMatched: z.boolean().optional(),
  reportText: reportText.optional(),
});
export type RubricStatement = z.infer<typeof rubricStatement>;
/** The fields that only a statement with an expression has; others are headings, of which nothing is evaluated. */
const EXPRESSION_FIELDS = ['expression', 'failIfMatched', 'warnIfMatched'] as const;

/** A rubric of the format of C2PA's asset rubrics: expressions over crJSON, with a text for each result. */
export interface Rubric {
  /** The name of its file. */
  readonly file: string;
  readonly metadata: z.infer<typeof rubricHead>['rubric_metadata'];
  readonly variables: Readonly<Record<string, unknown>>;
  readonly expressions: Readonly<Record<string, string>>;
  /** At least one. */
  readonly statements: readonly RubricStatement[];
}

/**
 * Reads a rubric: a YAML file of several documents, first what it is and what it names, then lists of statements.
 * Throws an Error where it is none.
 */
export async function readRubric(path: string): Promise<Rubric> {
  const { parseAllDocuments } = await import('yaml');
  const [head, ...sections] = parseAllDocuments(await readText(path)).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as unknown;
  });
  const { rubric_metadata: metadata, variables, expressions } = rubricHead.parse(head);
  const items = z
    .array(z.array(z.unknown()))
    .parse(sections.filter((section) => section !== null))
    .flat();
  const statements = items.filter((item) => EXPRESSION_FIELDS.some((field) => Object.hasOwn(Object(item), field)));
  if (statements.length === 0) throw new Error('it has no statements with an expression');
  if (statements.length > MAX_STATEMENTS) throw new Error(`it has more than ${MAX_STATEMENTS} statements`);
  const file = basename(path);
  return {
    file,
    metadata,
    variables: versioned(file, variables),
    expressions,
    statements: z.array(rubricStatement).parse(statements),
  };
}

/** Reads a regular file as it was at one moment. */
async function readText(path: string): Promise<string> {
  const file = await open(path, OPEN_FLAGS);
  try {
    const before = await file.stat({ bigint: true });
    if (!before.isFile()) throw new Error('it is no regular file');
    if (before.size > MAX_RUBRIC_BYTES) throw new Error(`it has more than ${MAX_RUBRIC_BYTES} bytes`);
    const text = await file.readFile('utf8');
    const after = await file.stat({ bigint: true });
    const isSame = before.size === after.size && before.mtimeNs === after.mtimeNs && before.ctimeNs === after.ctimeNs;
    if (!isSame) throw new Error('it was changed while it was read');
    return text;
  } finally {
    await file.close();
  }
}

/**
 * Adds the version of the specification that a rubric is about, which stands in its name, as a variable
 * of its expressions.
 */
function versioned(file: string, variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const version = /spec(\d+\.\d+)/.exec(file)?.[1];
  return version === undefined ? variables : { $expected_spec_version: version, ...variables };
}
