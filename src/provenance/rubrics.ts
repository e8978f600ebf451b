import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { CustomFunction } from '@adobe/json-formula';
import { z } from 'zod';
import type { RubricResult } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';

const EXTENSION = /\.ya?ml$/i;

/**
 * Finds the files of the rubrics that a request names, with or without extension; `true` for all. Throws `RUBRICS_OFF`
 * where the deployment has none, and `RUBRIC_UNKNOWN`.
 */
export async function findRubrics(folder: string | undefined, asked: true | readonly string[]): Promise<string[]> {
  if (folder === undefined) throw new AppError('RUBRICS_OFF', {}, { field: 'params.rubrics' });
  const files = (await listRubrics(folder)).sort();
  if (asked === true) return files;
  return asked.map((name, index) => {
    const file = files.find((candidate) => candidate === name || candidate.replace(EXTENSION, '') === name);
    if (file !== undefined) return file;
    throw new AppError('RUBRIC_UNKNOWN', { rubric: name, available: files }, { field: `params.rubrics[${index}]` });
  });
}

async function listRubrics(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => EXTENSION.test(name));
  } catch (cause) {
    throw unusable(folder, cause);
  }
}

/** Evaluates rubrics over the crJSON of an asset. Throws `RUBRIC_UNUSABLE` for a file that is none. */
export async function evaluateRubrics(
  folder: string,
  files: readonly string[],
  crJson: unknown,
): Promise<RubricResult[]> {
  const results: RubricResult[] = [];
  for (const file of files) {
    const path = join(folder, file);
    try {
      const rubric = await compileRubric(await readRubric(path));
      results.push(rubric.evaluate(crJson));
    } catch (cause) {
      throw cause instanceof AppError ? cause : unusable(path, cause);
    }
  }
  return results;
}

function unusable(path: string, cause: unknown): AppError {
  const text =
    cause instanceof z.ZodError ? z.prettifyError(cause) : cause instanceof Error ? cause.message : String(cause);
  return new AppError('RUBRIC_UNUSABLE', { path, problem: text.replace(/\s+/g, ' ').slice(0, 300) }, { cause });
}

/** The type code of json-formula for an argument of any type. */
const TYPE_ANY = 1;
const LANGUAGE = 'en';
/** Characters of one text of a result, and of one value that it names. */
const MAX_TEXT_CHARACTERS = 500;
const MAX_VALUE_CHARACTERS = 80;
/** The arguments of a named expression, which its body reads as `$args[0]` and so on. */
const ARGUMENTS = '$args';

/** A rubric that is ready to be evaluated. */
interface CompiledRubric {
  evaluate(crJson: unknown): RubricResult;
}

/** Compiles a rubric. Throws an Error of the library where one of its named expressions is malformed. */
async function compileRubric(rubric: Rubric): Promise<CompiledRubric> {
  const { default: JsonFormula } = await import('@adobe/json-formula');
  const { expressions } = rubric;
  const variables = { ...rubric.variables, [ARGUMENTS]: [] as unknown[] };
  const bodies = new Map<string, object>();
  const functions = Object.fromEntries(
    Object.keys(expressions).map((name) => [name, namedExpression(bodies, name, arityOf(name, expressions))]),
  );
  const engine = new JsonFormula(functions);
  const globals = [...Object.keys(variables), ...Object.keys(expressions)];
  for (const [name, body] of Object.entries(expressions)) bodies.set(name, engine.compile(body.trim(), globals));
  const search = (expression: string, data: unknown): unknown =>
    engine.run(engine.compile(expression.trim(), globals), data, LANGUAGE, { ...variables });
  return { evaluate: (crJson) => evaluate(rubric, (expression) => search(expression, crJson)) };
}

/** Makes a function of a named expression: its arguments are a global while its body is evaluated. */
function namedExpression(bodies: ReadonlyMap<string, object>, name: string, arity: number): CustomFunction {
  return {
    _func(args, data, interpreter) {
      const { [ARGUMENTS]: outer } = interpreter.globals;
      if (arity > 0) interpreter.globals[ARGUMENTS] = args;
      try {
        return interpreter.search(bodies.get(name) as object, data);
      } finally {
        interpreter.globals[ARGUMENTS] = outer;
      }
    },
    _signature: Array.from({ length: arity }, () => ({ types: [TYPE_ANY] })),
  };
}

/** Returns the number of arguments of a named expression: as many as its body reads. */
function arityOf(name: string, expressions: Readonly<Record<string, string>>): number {
  const read = [...(expressions[name] ?? '').matchAll(/\$args\[(\d{1,2})\]/g)].map(([, index]) => Number(index) + 1);
  return Math.max(/\$args\b/.test(expressions[name] ?? '') ? 1 : 0, ...read);
}

function evaluate({ file, metadata, statements }: Rubric, search: (expression: string) => unknown): RubricResult {
  const counts = { true: 0, false: 0, warn: 0, error: 0 };
  const results = statements.map((statement) => {
    const result = resultOf(statement, search);
    counts[result.result] += 1;
    return result;
  });
  const { name, version } = metadata;
  return {
    rubric: file,
    ...(name !== undefined && { name }),
    ...(version !== undefined && { version }),
    counts,
    statements: results,
  };
}

function resultOf(
  statement: RubricStatement,
  search: (expression: string) => unknown,
): RubricResult['statements'][number] {
  const { id, failIfMatched = false, warnIfMatched = false } = statement;
  try {
    const value = search(statement.expression);
    const matches = Array.isArray(value) ? value : [];
    const isMatched = matches.length > 0;
    const isTrue = failIfMatched || warnIfMatched ? !isMatched : Array.isArray(value) ? isMatched : value === true;
    const result = isTrue ? 'true' : warnIfMatched ? 'warn' : 'false';
    return { id, result, text: textOf(statement, result, matches) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { id, result: 'error', text: cut(`It could not be evaluated: ${problem}`, MAX_TEXT_CHARACTERS) };
  }
}

/** Returns the text of a rubric for a result, in English where it has several languages. */
function textOf(
  { reportText, description }: RubricStatement,
  result: 'true' | 'false' | 'warn',
  matches: readonly unknown[],
): string {
  const chosen =
    typeof reportText === 'object' ? (reportText[result] ?? reportText['false'] ?? reportText) : reportText;
  const text = typeof chosen === 'object' ? chosen['en'] : chosen;
  const values = matches.map((match) =>
    cut(typeof match === 'string' ? match : JSON.stringify(match), MAX_VALUE_CHARACTERS),
  );
  const shown =
    typeof text === 'string' ? text.replaceAll('{{matches}}', () => values.join(', ')) : (description ?? '');
  return cut(shown, MAX_TEXT_CHARACTERS);
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text.toWellFormed() : `${text.slice(0, characters - 1).toWellFormed()}…`;
}

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
type RubricStatement = z.infer<typeof rubricStatement>;

/** A rubric of the format of C2PA's asset rubrics: expressions over crJSON, with a text for each result. */
interface Rubric {
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
async function readRubric(path: string): Promise<Rubric> {
  const { parseAllDocuments } = await import('yaml');
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
