import type { FastifyInstance } from 'fastify';
import type { Config } from '#config/config.ts';
import { type JobResultResponse, jobResultResponse } from '#contract/job.ts';
import { createHttpServer } from '#http/http-server.ts';
import type { Jobs, JobsOptions } from '#jobs/jobs.ts';
import { operations } from '#operations/registry.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { createLogger } from '#telemetry/logger.ts';
import type { Tracing } from '#telemetry/telemetry.ts';
import { configFor, SCRIPTED_WORKER, type Scope, shared, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { telemetryOf } from '../support/jobs/test-telemetry.ts';
import { noReload, trial } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A server over the real jobs, whose workers do what an input's path says. */
export interface JobServer {
  readonly base: string;
  readonly jobs: Jobs;
  readonly app: FastifyInstance;
  readonly config: Config;
  readonly logged: string[];
  /** Submits scripts, with more fields of the body and headers where they are given. */
  post(path: string, scripts: readonly string[], more?: MoreOfRequest): Promise<Response>;
  /** Submits scripts to an asynchronous route, and returns the job's identifier. */
  submit(...scripts: string[]): Promise<string>;
  lookUp(id: string): Promise<JobResultResponse>;
  /** The job when it has ended. */
  ended(id: string): Promise<JobResultResponse>;
}

export interface MoreOfRequest {
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

export interface JobServerOptions {
  readonly worker?: Partial<Config['worker']>;
  readonly config?: (config: Config) => Config;
  readonly configNow?: () => Config;
  readonly jobs?: Partial<JobsOptions>;
  readonly tracing?: Tracing;
}

export async function serveJobs(t: Scope, options: JobServerOptions = {}): Promise<JobServer> {
  const { config: change = (config: Config) => config, configNow, tracing = null } = options;
  const config = change(configFor(temporaryFolder(), options.worker));
  const logged: string[] = [];
  const logger = createLogger({ LOG_LEVEL: 'debug' }, { write: (line: string) => void logged.push(line) });
  const telemetry = telemetryOf(() => jobs, tracing);
  const live = { ...(configNow !== undefined && { configNow }) };
  const jobs = await startedJobs(t, {
    ...{ config, workerEntry: SCRIPTED_WORKER, telemetry, log: logger },
    ...live,
    ...options.jobs,
  });
  const { checkAssertions } = trial;
  const trust = { current: NO_TRUST_LISTS };
  const app = await createHttpServer({
    ...{ config, jobs, operations, checkAssertions, telemetry, trust },
    ...{ logger, log: logger },
    ...live,
    reload: noReload,
  });
  t.after(async () => void (await app.close()));
  const base = await app.listen({ host: '127.0.0.1', port: 0 });
  const post: JobServer['post'] = (path, scripts, { body = {}, headers = {} } = {}) =>
    fetch(base + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ inputs: scripts.map((script) => ({ type: 'local_file_path', path: script })), ...body }),
    });
  const lookUp = async (id: string) => jobResultResponse.parse(await (await fetch(`${base}/v2/jobs/${id}`)).json());
  return {
    base,
    jobs,
    app,
    config,
    logged,
    post,
    lookUp,
    submit: async (...scripts) => ((await (await post('/v2/c2pa/video', scripts)).json()) as { job_id: string }).job_id,
    ended: async (id) => {
      await until(async () => (await lookUp(id)).timing.finished_at !== undefined);
      return lookUp(id);
    },
  };
}

/** One server for the tests of a file that neither mind each other's jobs nor leave any running. */
export function sharedJobServer(options: JobServerOptions = {}): () => Promise<JobServer> {
  return shared((scope) => serveJobs(scope, options));
}
