import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { RubricResult } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';
import { compileRubric } from './rubrics/evaluate-rubric.ts';
import { readRubric } from './rubrics/read-rubric.ts';

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
      results.push(compileRubric(await readRubric(path)).evaluate(crJson));
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
