import assert from 'node:assert/strict';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { loadConfig } from '#config/load-config.ts';
import { validate } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { operations } from '#operations/registry.ts';
import { createAssertionChecker } from '#provenance/assertion-checker.ts';

/** More time than checks take, on a machine of any speed. */
const { checkAssertions } = createAssertionChecker({ budgets: { timeMs: 600_000, memoryBytes: 1024 ** 3 } });

/** Removed after the tests of the file that imports this one. */
export const folder = await realpath(await mkdtemp(join(tmpdir(), 'attestream-admission-')));
after(() => rm(folder, { recursive: true }));

type Path = '/c2pa/video' | '/c2pa/audio' | '/c2pa/package' | '/package';

/** Submits to an operation whose outputs go to `<folder>/out`. */
export async function admit(path: Path, body: unknown, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const operation = operations.find((candidate) => candidate.path === path) ?? assert.fail(path);
  const config = await loadConfig({ env: { SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: 'out', ...env }, cwd: folder });
  await operation.validateRequest(validate(operation.request, body), {
    config,
    checkAssertions,
    signal: new AbortController().signal,
  });
}

/** The reason, code and place of a refusal. */
export async function refusal(path: Path, body: unknown, env: NodeJS.ProcessEnv = {}) {
  const error = await admit(path, body, env).then(
    () => assert.fail('the request was admitted'),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof AppError, String(error));
  return { reason: error.reason, code: error.code, ...error.location };
}

export function files(...paths: string[]): { type: 'local_file_path'; path: string }[] {
  return paths.map((path) => ({ type: 'local_file_path', path }));
}
