import type { z } from 'zod';
import type { EnvironmentOverride } from './environment.ts';
import type { RawTable } from './load-config.ts';

type Issue = z.core.$ZodIssue;

/** Sections that belong to S3 support, which this build does not have: their presence must stop the start. */
const S3_SECTIONS = ['input_resolvers', 'output_sinks'] as const;

/** Says of every S3 section that is configured that this build cannot serve it. */
export function s3Problems(table: RawTable): string[] {
  return S3_SECTIONS.filter((section) => Object.hasOwn(Object(table[section]) as object, 's3')).map(
    (section) =>
      `${section}.s3: S3 support is not part of this build. Remove the section, or install a build that has it`,
  );
}

/** One line for each problem: where the key comes from, its path, and what it should be. Never its value. */
export function problemsOf(error: z.core.$ZodError, file: string, overrides: readonly EnvironmentOverride[]): string[] {
  return error.issues.flatMap((issue) =>
    keysOf(issue)
      .filter((path) => !isS3Section(path))
      .map((path) => `${originOf(path, file, overrides)}: ${path.join('.')}: ${problemOf(issue)}`),
  );
}

function keysOf(issue: Issue): string[][] {
  const path = issue.path.map(String);
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

function isS3Section([section, key]: readonly string[]): boolean {
  return key === 's3' && S3_SECTIONS.some((candidate) => candidate === section);
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
  number: 'a number',
  object: 'a table',
  string: 'a string',
};
