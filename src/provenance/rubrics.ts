import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { CustomFunction } from '@adobe/json-formula';
import { z } from 'zod';
import type { RubricResult } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { cut } from './describe-report.ts';

const EXTENSION = /\.ya?ml$/i;
/** Names of rubrics that an error lists. */
const MAX_NAMED_RUBRICS = 20;

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
    const available = files.slice(0, MAX_NAMED_RUBRICS);
    throw new AppError(
      'RUBRIC_UNKNOWN',
      { rubric: name, available, count: files.length },
      { field: `params.rubrics[${index}]` },
    );
  });
}

async function listRubrics(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => EXTENSION.test(name));
  } catch (cause) {
    throw unusable(folder, cause);
  }
}

/** Characters of all results of an input, which are part of the answer; those of the official rubrics have 15,000. */
const MAX_RESULT_CHARACTERS = 128 * 1024;

/**
 * Evaluates rubrics over the crJSON of an asset. Throws `RUBRIC_UNUSABLE` for a file that is none, and where the
 * results exceed their limit.
 */
export async function evaluateRubrics(
  folder: string,
  files: readonly string[],
  crJson: unknown,
): Promise<RubricResult[]> {
  const results: RubricResult[] = [];
  let characters = 0;
  for (const file of files) {
    const path = join(folder, file);
    try {
      const result = await evaluateRubric(await readRubric(path), crJson);
      characters += JSON.stringify(result).length;
      if (characters > MAX_RESULT_CHARACTERS) throw new Error(`results have over ${MAX_RESULT_CHARACTERS} characters`);
      results.push(result);
    } catch (cause) {
      throw cause instanceof AppError ? cause : unusable(path, cause);
    }
  }
  return results;
}

function unusable(path: string, cause: unknown): AppError {
  const text =
    cause instanceof z.ZodError
      ? z.prettifyError(cause)
      : isSystemError(cause)
        ? problemOf(cause)
        : (cause as Error).message;
  return new AppError('RUBRIC_UNUSABLE', { path, problem: text.replace(/\s+/g, ' ').slice(0, 300) }, { cause });
}

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
type RubricStatement = z.infer<typeof rubricStatement>;
/** The fields that only a statement with an expression has; others are headings, of which nothing is evaluated. */
const EXPRESSION_FIELDS = ['expression', 'failIfMatched', 'warnIfMatched'] as const;

/** A rubric of the format of C2PA's asset rubrics: expressions over crJSON, with a text for each result. */
interface Rubric {
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
async function readRubric(path: string): Promise<Rubric> {
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

/** The type code of json-formula for an argument of any type. */
const TYPE_ANY = 1;
const LANGUAGE = 'en';
/** Characters of one text of a result, and of one value that it names. */
const MAX_TEXT_CHARACTERS = 500;
const MAX_VALUE_CHARACTERS = 80;
/** Matches that a text names at most, and characters of it before they are filled in: more would be cut off. */
const MAX_SHOWN_MATCHES = 100;
const MAX_TEMPLATE_CHARACTERS = MAX_TEXT_CHARACTERS * '{{matches}}'.length;
/** The arguments of a named expression, which its body reads as `$args[0]` and so on. */
const ARGUMENTS = '$args';

/** Evaluates a rubric. Throws an Error of the library where one of its named expressions is malformed. */
async function evaluateRubric(rubric: Rubric, crJson: unknown): Promise<RubricResult> {
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
  const search = (expression: string): unknown =>
    engine.run(engine.compile(expression.trim(), globals), crJson, LANGUAGE, { ...variables });
  return resultsOf(rubric, search);
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

function resultsOf({ file, metadata, statements }: Rubric, search: (expression: string) => unknown): RubricResult {
  const counts = { true: 0, false: 0, warn: 0, error: 0 };
  const results = statements.map((statement) => {
    const result = resultOf(statement, search);
    counts[result.result] += 1;
    return result;
  });
  const { name, version } = metadata;
  return {
    rubric: file,
    ...(name !== undefined && { name: cut(name, MAX_TEXT_CHARACTERS) }),
    ...(version !== undefined && { version: cut(version, MAX_TEXT_CHARACTERS) }),
    counts,
    statements: results,
  };
}

function resultOf(
  statement: RubricStatement,
  search: (expression: string) => unknown,
): RubricResult['statements'][number] {
  const { failIfMatched = false, warnIfMatched = false } = statement;
  const id = cut(statement.id, MAX_TEXT_CHARACTERS);
  try {
    const value = search(statement.expression);
    const isTrue = isMatch(value) !== (failIfMatched || warnIfMatched);
    const result = isTrue ? 'true' : warnIfMatched && !failIfMatched ? 'warn' : 'false';
    return { id, result, text: textOf(statement, result, Array.isArray(value) ? value : []) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { id, result: 'error', text: cut(`It could not be evaluated: ${problem}`, MAX_TEXT_CHARACTERS) };
  }
}

/**
 * Tells whether the value of an expression is a match, as rubrics take it: anything but nothing, false, zero and
 * what is empty.
 */
function isMatch(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return typeof value === 'number' ? value > 0 : Boolean(value);
}

/** Returns the text of a rubric for a result, in English where it has several languages. */
function textOf(
  { reportText, description = '' }: RubricStatement,
  result: 'true' | 'false' | 'warn',
  matches: readonly unknown[],
): string {
  const text = inEnglish(typeof reportText === 'object' ? outcomeText(reportText, result) : reportText);
  if (text === undefined) return cut(description, MAX_TEXT_CHARACTERS);
  const values = matches
    .slice(0, MAX_SHOWN_MATCHES)
    .map((match) => cut(typeof match === 'string' ? match : JSON.stringify(match), MAX_VALUE_CHARACTERS));
  const shown = cut(values.join(', '), MAX_TEXT_CHARACTERS);
  return cut(
    cut(text, MAX_TEMPLATE_CHARACTERS).replaceAll('{{matches}}', () => shown),
    MAX_TEXT_CHARACTERS,
  );
}

type ReportTexts = Exclude<RubricStatement['reportText'], string | undefined>;

/** Returns the text of a result; that of a failure for a warning without one of its own. */
function outcomeText(texts: ReportTexts, result: 'true' | 'false' | 'warn'): string | ReportTexts {
  const outcome = texts[result] ?? (result === 'warn' ? texts['false'] : undefined);
  return outcome ?? texts['default'] ?? texts;
}

function inEnglish(text: string | ReportTexts | undefined): string | undefined {
  const english = typeof text === 'object' ? text['en'] : text;
  return typeof english === 'string' ? english : undefined;
}
