import JsonFormula, { type CustomFunction } from '@adobe/json-formula';
import type { RubricResult } from '#contract/verification.ts';
import type { Rubric, RubricStatement } from './read-rubric.ts';

/** The type code of json-formula for an argument of any type. */
const TYPE_ANY = 1;
const LANGUAGE = 'en';
/** Characters of one text of a result, and of one value that it names. */
const MAX_TEXT_CHARACTERS = 500;
const MAX_VALUE_CHARACTERS = 80;
/** The arguments of a named expression, which its body reads as `$args[0]` and so on. */
const ARGUMENTS = '$args';

/** A rubric that is ready to be evaluated. */
export interface CompiledRubric {
  evaluate(crJson: unknown): RubricResult;
}

/** Compiles a rubric. Throws an Error of the library where one of its named expressions is malformed. */
export function compileRubric(rubric: Rubric): CompiledRubric {
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
