import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JobResultEntry } from '#contract/job.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';

const KILLING_SERVICE = fileURLToPath(new URL('./killing-service.ts', import.meta.url));

/**
 * A service that inputs kill by their names (killing-service.ts), over one folder. Each start finishes what the kill before
 * it left, and takes the input that kills it next.
 */
export class KilledService {
  readonly #options: { readonly folder: string; readonly settings?: Readonly<Record<string, string>> };
  #service: Promise<RunningService> | null = null;

  constructor(options: { readonly folder: string; readonly settings?: Readonly<Record<string, string>> }) {
    this.#options = options;
  }

  /** Submits an input, waits until it has killed the service, and calls `whileDown` before anything runs again. */
  async killBy(route: string, body: object, whileDown: () => Promise<void> = async () => undefined): Promise<string> {
    const service = await this.#running();
    const jobId = await service.submit(route, body);
    await service.ended;
    this.#service = null;
    await whileDown();
    return jobId;
  }

  /** Starts the service again, and returns how the only input of a job ended. Nothing of it may be left behind. */
  async finish(jobId: string): Promise<JobResultEntry> {
    const service = await this.#running();
    const [result, ...others] = (await service.waitFor(jobId)).results;
    assert(result !== undefined && others.length === 0);
    for (const name of ['staging', 'scratch', 'uploads']) assert.deepEqual(this.#entriesOf(name), [], name);
    return result;
  }

  async stop(): Promise<void> {
    await (await this.#service)?.stop();
  }

  #running(): Promise<RunningService> {
    this.#service ??= startService({ ...this.#options, program: KILLING_SERVICE });
    return this.#service;
  }

  /** Some of these folders are made when they are first needed. */
  #entriesOf(name: string): string[] {
    const folder = join(this.#options.folder, 'data', name);
    return existsSync(folder) ? readdirSync(folder) : [];
  }
}
