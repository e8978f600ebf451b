import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { loadConfig } from '#config/load-config.ts';
import { type ApiErrorResponse, apiErrorResponse } from '#contract/error.ts';
import { createHttpServer } from '#http/http-server.ts';
import type { Reload } from '#http/routes/service-routes.ts';
import { operations } from '#operations/registry.ts';
import { createAssertionChecker } from '#provenance/assertion-checker.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import { createLogger } from '#telemetry/logger.ts';
import type { OwnAddress } from '../../../scripts/own-address.ts';
import { telemetryOf } from '../jobs/test-telemetry.ts';
import { MemoryJobs } from './memory-jobs.ts';

/** A server on a port of its own, with jobs that the test ends, and every line that it logged. */
export interface TestServer {
  readonly app: FastifyInstance;
  readonly base: string;
  readonly jobs: MemoryJobs;
  readonly logged: string[];
  /** Sends JSON, or a body as it is where it is a string. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One for all servers of a test file: its process is started by the first assertion. A check may take long on a slow host. */
export const trial = createAssertionChecker({ budgets: { timeMs: 600_000, memoryBytes: 1024 ** 3 } });

/** Reloads nothing. */
export const noReload: Reload = async () => ({ tokens: 0, callers: [], trust_lists: [], needs_restart: [] });

/** Starts a server; `env` holds `SERVICE__SECTION__KEY` variables. The system chooses its port where no address is given. */
export async function serve(
  env: NodeJS.ProcessEnv = {},
  address: OwnAddress = { host: '127.0.0.1', port: 0 },
): Promise<TestServer> {
  const jobs = new MemoryJobs();
  const logged: string[] = [];
  const logger = createLogger({ LOG_LEVEL: 'trace' }, { write: (line: string) => void logged.push(line) });
  const config = await loadConfig({ env, cwd: join(tmpdir(), 'attestream-http-nowhere') });
  const telemetry = telemetryOf(() => null);
  const { checkAssertions } = trial;
  const trust = await TrustStore.open({ settings: config.trust, log: logger });
  const app = await createHttpServer({
    ...{ config, jobs, operations, checkAssertions, telemetry, trust },
    ...{ logger, log: logger },
    reload: noReload,
  });
  const base = await app.listen(address);
  return {
    app,
    base,
    jobs,
    logged,
    post: (path, body, headers = {}) =>
      fetch(base + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: async () => {
      trust.close();
      const closed = app.close();
      // A browser opens connections ahead, for whose requests the server would wait.
      app.server.closeAllConnections();
      await closed;
    },
  };
}

/** The error of a reply, after holding its body against what every error must look like. */
export async function errorOf(reply: Response): Promise<ApiErrorResponse['error'] & { status: number }> {
  const { error } = apiErrorResponse.parse(await reply.json());
  return { status: reply.status, ...error };
}

/** A request that passes every check. */
export const goodBody = { inputs: [{ type: 'local_file_path', path: '/media/interview.mp4' }] };
