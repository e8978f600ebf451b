import { mkdir } from 'node:fs/promises';
import { relative } from 'node:path';
import type { Config } from '#config/config.ts';
import type { JobResultEntry } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import { LocalRun } from '#local-run.ts';
import { entryInCommandWords } from './command-words.ts';
import { findInputs } from './find-inputs.ts';
import { logOfCommand } from './log-of-command.ts';
import { linkTo } from './named-folder.ts';
import { planLocalSigning } from './plan-signing.ts';
import type { RunOptions } from './run-options.ts';
import { Terminal } from './terminal.ts';
import type { WatchedEntry, WatchedFolder } from './watched-folder.ts';

/** Entries that are taken at once; the scheduler runs as many of them as the host carries. */
const MAX_TAKEN = 64;

interface Parts {
  readonly watched: WatchedFolder;
  readonly options: Pick<RunOptions, 'json' | 'quiet' | 'parallel'>;
  readonly settings: { readonly config: Config; readonly configFile: string };
  readonly signal: AbortSignal;
}

/** Signs the entries of a watched folder. While there is nothing to sign, no other process runs. */
export class SigningWatch {
  readonly #parts: Parts;
  readonly #terminal: Terminal;
  readonly #running = new Map<string, Promise<void>>();
  #run: LocalRun | null = null;
  /** The development identity that was told of. */
  #toldIdentity: string | null = null;
  /** Numbers entries for the links to folders. */
  #count = 0;
  /** An error that is no fault of an entry: it ends the watch, and entries stay where they are. */
  #failure: unknown;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#terminal = new Terminal(parts.options);
  }

  /** Finishes what an earlier process had signed. */
  async recover(): Promise<void> {
    for (const path of await this.#parts.watched.recover()) {
      this.#terminal.result({ status: 'succeeded', output_path: path }, `${path}: signed before the restart`);
    }
  }

  /** Takes what has lain still. Throws the error that keeps everything from being signed. */
  async look(): Promise<void> {
    if (this.#failure !== undefined) await this.#end();
    for (const entry of this.#parts.watched.look(performance.now())) {
      if (this.#running.has(entry.path) || this.#running.size >= MAX_TAKEN) continue;
      const run = await this.#started();
      const work = this.#sign(run, entry)
        .catch((error: unknown) => {
          this.#failure ??= error;
        })
        .finally(() => this.#running.delete(entry.path));
      this.#running.set(entry.path, work);
    }
    if (this.#running.size === 0) await this.close();
  }

  /** Stops what runs. */
  async close(): Promise<void> {
    const run = this.#run;
    this.#run = null;
    await run?.close();
    await Promise.all(this.#running.values());
  }

  async #end(): Promise<never> {
    await this.close();
    throw this.#failure;
  }

  async #started(): Promise<LocalRun> {
    if (this.#run !== null) return this.#run;
    const { watched, options, settings } = this.#parts;
    const { parallel } = options;
    const given = {
      ...settings,
      outputDir: watched.stagingRoot,
      replacesOutputs: true,
      signs: true,
      log: logOfCommand(this.#terminal),
    };
    this.#run = await LocalRun.start({ ...given, ...(parallel !== undefined && { parallel }) });
    const { developmentIdentity: file } = this.#run;
    if (file !== null && file !== this.#toldIdentity)
      this.#terminal.note(`Signing with the development identity ${file}, which nobody has a reason to trust.`);
    this.#toldIdentity = file;
    return this.#run;
  }

  async #sign(run: LocalRun, entry: WatchedEntry): Promise<void> {
    const { watched, signal } = this.#parts;
    const result = await this.#resultOf(run, entry);
    if (signal.aborted && result?.status !== 'succeeded') return;
    if (result === null) return;
    if (result.status === 'succeeded') {
      try {
        return this.#report(entry, { ...result, output_path: await watched.finish(entry) });
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return await this.#fail(entry, failedEntry(0, error.toData()));
      }
    }
    // It was written to meanwhile: it is taken again when it lies still.
    if (!watched.hasChanged(entry)) await this.#fail(entry, result);
  }

  async #fail(entry: WatchedEntry, result: JobResultEntry): Promise<void> {
    const told = entryInCommandWords(result);
    await this.#parts.watched.fail(entry, `${told.error_details?.['reason'] ?? ''}: ${told.error ?? told.status}`);
    this.#report(entry, told);
  }

  #report({ path }: WatchedEntry, { input_index: _, ...result }: JobResultEntry): void {
    const isFailure = result.status !== 'succeeded';
    const text = isFailure ? `${path}: ${result.error ?? result.status}` : `${path}: signed as ${result.output_path}`;
    this.#terminal.result({ input_path: path, ...result }, text, isFailure);
  }

  /** Signs an entry into its staging folder. Resolves with null where it was interrupted. */
  async #resultOf(run: LocalRun, { path, stagingFolder }: WatchedEntry): Promise<JobResultEntry | null> {
    const { watched, signal } = this.#parts;
    let result: JobResultEntry | null = null;
    try {
      for await (const found of findInputs([path], { isRecursive: false, isWatched: true })) {
        if (found.problem !== undefined) throw found.problem;
        const { operation, input, params, outputName } = await planLocalSigning(found, stagingFolder, CHOICES);
        await mkdir(stagingFolder, { recursive: true });
        const named = outputName === undefined ? input : linkTo(input, outputName, run.folder, this.#count++);
        const output = { type: 'local', name: relative(watched.stagingRoot, stagingFolder) } as const;
        const follower = {
          finished: ([first]: readonly JobResultEntry[]) => {
            result = first ?? result;
          },
          progress: () => undefined,
        };
        await run.run(operation, { inputs: [named], params, output }, follower, signal);
      }
      return result;
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof AppError) || error.class === 'outage') throw error;
      return failedEntry(0, error.toData());
    }
  }
}

const CHOICES = { params: {}, isSidecar: false };
