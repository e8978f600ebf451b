import type { z } from 'zod';
import type { EnvironmentOverride } from './environment.ts';

type Issue = z.core.$ZodIssue;

/** One line for each problem: where the key comes from, its path, and what it should be. Never its value. */
export function problemsOf(error: z.core.$ZodError, file: string, overrides: readonly EnvironmentOverride[]): string[] {
  return error.issues.flatMap((issue) =>
    keysOf(issue).map((path) => `${originOf(path, file, overrides)}: ${path.join('.')}: ${problemOf(issue)}`),
  );
}

function keysOf(issue: Issue): string[][] {
  const path = issue.path.map(String);
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

function originOf(path: readonly string[], file: string, overrides: readonly EnvironmentOverride[]): string {
  const source = overrides.find((override) =>
    override.path.every((key, depth) => depth >= path.length || key === path[depth]),
  );
  return source?.variable ?? file;
}

function problemOf(issue: Issue): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'there is no such key';
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing';
      return `must be ${TYPE_NAMES[issue.expected] ?? `of the type ${issue.expected}`}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int' ? `must be at least ${issue.minimum}` : issue.message;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  int: 'a whole number',
  // Every number of the configuration is a whole one.
  number: 'a whole number',
  object: 'a table',
  string: 'a string',
};
