import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

/** Size limit of a rubric; the official ones have up to 30 kB. */
const MAX_RUBRIC_BYTES = 1024 * 1024;
const MAX_STATEMENTS = 1000;

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

/** A rubric of the format of C2PA's asset rubrics: expressions over crJSON, with a text for each result. */
export interface Rubric {
  /** The name of its file. */
  readonly file: string;
  readonly metadata: z.infer<typeof rubricHead>['rubric_metadata'];
  readonly variables: Readonly<Record<string, unknown>>;
  readonly expressions: Readonly<Record<string, string>>;
  readonly statements: readonly RubricStatement[];
}

/**
 * Reads a rubric: a YAML file of several documents, first what it is and what it names, then lists of statements. Throws an Error
 * where it is none.
 */
export async function readRubric(path: string): Promise<Rubric> {
  const { size } = await stat(path);
  if (size > MAX_RUBRIC_BYTES) throw new Error(`it has more than ${MAX_RUBRIC_BYTES} bytes`);
  const [head, ...sections] = parseAllDocuments(await readFile(path, 'utf8')).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as unknown;
  });
  const { rubric_metadata: metadata, variables, expressions } = rubricHead.parse(head);
  const items = z
    .array(z.array(z.unknown()))
    .parse(sections.filter((section) => section !== null))
    .flat();
  const statements = items.filter((item) => Object.hasOwn(Object(item), 'expression'));
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

/** The version of the specification that a rubric is about stands in its name, and is a variable of its expressions. */
function versioned(file: string, variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const version = /spec(\d+\.\d+)/.exec(file)?.[1];
  return version === undefined ? variables : { $expected_spec_version: version, ...variables };
}
