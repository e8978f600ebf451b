import { basename, relative, resolve, sep } from 'node:path';
import type { Config } from '#config/config.ts';
import type { JobResultEntry, OperationName } from '#contract/job.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import { LocalRun, type LocalRunOptions } from '#local-run.ts';
import { entryInCommandWords } from './command-words.ts';
import { EXIT } from './exit-codes.ts';
import { commonFolder, type FoundInput, findInputs, isAddress, type Search } from './find-inputs.ts';
import { Interruption } from './interruption.ts';
import { logOfCommand } from './log-of-command.ts';
import { linkTo, withoutLink } from './named-folder.ts';
import type { RunOptions } from './run-options.ts';
import { Terminal } from './terminal.ts';

/** Inputs of one request, and requests that run at once: a command holds no more results than these have. */
const BATCH_SIZE = 1_000;
const MAX_CONCURRENT_REQUESTS = 4;

/** An input with what is to be done with it. */
export interface PlannedInput {
  readonly operation: OperationName;
  readonly input: ApiInputRef;
  /** The folder of its output; null where nothing is written. */
  readonly outputFolder: string | null;
  readonly params: object;
  /** The name of its output, where that is not named after the input: that of a folder. */
  readonly outputName?: string;
}

/** A command that runs operations on what its paths name. */
export interface InputsCommand {
  readonly options: RunOptions;
  readonly config: Config;
  readonly configFile: string;
  readonly paths: readonly string[];
  readonly search: Omit<Search, 'isRecursive' | 'skipsSigned'>;
  readonly signs: boolean;
  /** The folder that all outputs are written to; undefined: beside the inputs; null: there are none. */
  readonly output: string | null | undefined;
  /** Throws an AppError for an input that the command does not take. */
  plan(found: FoundInput): Promise<PlannedInput>;
  /** Returns a result for people. */
  describe(path: string, entry: JobResultEntry): string;
  /** Called with each result. */
  finished?(entry: JobResultEntry): void;
}

/** Inputs of one operation with outputs in one folder. */
interface Batch {
  readonly plan: PlannedInput;
  readonly inputs: { readonly index: number; readonly path: string; input: ApiInputRef }[];
}

/** Runs a command, writes its results, and sets the exit code. Throws an AppError where the command or its configuration is wrong. */
export async function runInputs(command: InputsCommand): Promise<void> {
  const run = new InputsRun(command);
  await run.all();
  process.exitCode = run.exitCode;
}

class InputsRun {
  readonly #command: InputsCommand;
  readonly #terminal: Terminal;
  readonly #interruption = new Interruption();
  readonly #running = new Map<Batch, NonNullable<ListedJob['progress']>>();
  #count = 0;
  #doneCount = 0;
  #doneBytes = 0;
  #hasFailed = false;
  #hasBadVerdict = false;

  constructor(command: InputsCommand) {
    this.#command = command;
    this.#terminal = new Terminal(command.options);
  }

  get #search(): Search {
    const { options, search } = this.#command;
    return { ...search, isRecursive: options.recursive ?? false };
  }

  get exitCode(): number {
    if (this.#interruption.isSignalled) return EXIT.interrupted;
    if (this.#hasFailed || this.#interruption.outputProblem !== null) return EXIT.inputFailed;
    return this.#hasBadVerdict ? EXIT.badVerdict : EXIT.ok;
  }

  async all(): Promise<void> {
    const { options, config, configFile, paths, output, signs } = this.#command;
    if (options.dryRun) return await this.#tellPlan();
    const log = logOfCommand(this.#terminal);
    await this.#terminal.startProgress(paths.length);
    try {
      for (const group of output === undefined ? byTopFolder(paths, this.#search) : [paths]) {
        if (this.#interruption.signal.aborted) return;
        const local = group.filter((path) => !isAddress(path));
        const outputDir = output === undefined ? commonFolder(local, this.#search) : output;
        const { parallel, force = false } = options;
        const given = { config, configFile, outputDir, replacesOutputs: force, signs, log };
        await this.#runGroup(group, { ...given, ...(parallel !== undefined && { parallel }) });
      }
    } finally {
      this.#terminal.endProgress();
      const { outputProblem } = this.#interruption;
      if (outputProblem !== null) this.#terminal.problem(`The results could not be written: ${outputProblem}.`);
    }
  }

  /** Writes what would be done. */
  async #tellPlan(): Promise<void> {
    for await (const { path, plan } of this.#planned(this.#command.paths)) {
      const { operation, outputFolder } = plan;
      const entry = { input_path: path, operation, ...(outputFolder !== null && { output_folder: outputFolder }) };
      const into = outputFolder === null ? '' : `, into ${outputFolder}`;
      this.#terminal.result(entry, `${path}: ${operation}${into}`);
    }
  }

  /** Runs the inputs of a group. Starts nothing where none of its paths can be one. */
  async #runGroup(paths: readonly string[], options: LocalRunOptions): Promise<void> {
    let run: LocalRun | null = null;
    const running = new Set<Promise<unknown>>();
    try {
      for await (const batch of this.#batches(paths)) {
        run ??= await this.#start(options);
        // One that was rejected stays, for the end of the loop.
        const work: Promise<unknown> = this.#runBatch(run, batch, options.outputDir).then(() => running.delete(work));
        work.catch(() => undefined);
        running.add(work);
        if (running.size >= MAX_CONCURRENT_REQUESTS) await Promise.race(running);
        if (this.#interruption.signal.aborted) break;
      }
      await Promise.all(running);
    } finally {
      await run?.close();
    }
  }

  async #start(options: LocalRunOptions): Promise<LocalRun> {
    const run = await LocalRun.start(options);
    const { developmentIdentity } = run;
    if (developmentIdentity !== null) {
      this.#terminal.note(
        `Signing with the development identity ${developmentIdentity}, which nobody has a reason to trust. Use --certificate and --key.`,
      );
    }
    return run;
  }

  async #runBatch(run: LocalRun, batch: Batch, outputDir: string | null): Promise<void> {
    const { operation, outputFolder, outputName, params } = batch.plan;
    if (outputName !== undefined) {
      for (const each of batch.inputs) each.input = linkTo(each.input, outputName, run.folder, each.index);
    }
    const { signal } = this.#interruption;
    const folder = outputFolder === null || outputDir === null ? null : relative(outputDir, outputFolder);
    const request = {
      inputs: batch.inputs.map(({ input }) => input),
      params,
      ...(folder !== null && { output: { type: 'local', name: folder } as const }),
    };
    const follower = {
      finished: (entries: readonly JobResultEntry[]) => {
        for (const entry of entries) this.#finished(batch, entry);
      },
      progress: (progress: NonNullable<ListedJob['progress']>) => {
        this.#running.set(batch, progress);
        this.#showProgress();
      },
    };
    try {
      await run.run(operation, request, follower, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    this.#doneBytes += this.#running.get(batch)?.bytes_done ?? 0;
    this.#running.delete(batch);
  }

  #finished({ inputs, plan }: Batch, entry: JobResultEntry): void {
    const given = inputs[entry.input_index];
    if (given === undefined) return;
    const named = plan.outputName === undefined ? entry : withoutLink(entry, given.input, given.path);
    this.#report(given.path, { ...named, input_index: given.index });
  }

  #report(path: string, entry: JobResultEntry): void {
    const { command, terminal } = { command: this.#command, terminal: this.#terminal };
    const isFailure = entry.status !== 'succeeded';
    const { input_index, ...rest } = entryInCommandWords(entry);
    const named = { input_index, input_path: path, input_name: basename(path), ...rest };
    this.#doneCount += 1;
    this.#hasFailed ||= isFailure;
    this.#hasBadVerdict ||= ['invalid', 'none'].includes(entry.verification?.state ?? '');
    command.finished?.(named);
    terminal.result(
      named,
      isFailure ? `${path}: ${rest.error ?? rest.status}` : command.describe(path, entry),
      isFailure,
    );
    for (const warning of rest.warnings ?? []) terminal.note(`${path}: ${warning}`);
    this.#showProgress();
  }

  #showProgress(): void {
    const running = [...this.#running.values()];
    const partly = running.map(({ fraction, inputs_total: total, inputs_done: done }) => fraction * total - done);
    this.#terminal.progress({
      inputsDone: this.#doneCount + partly.reduce((sum, part) => sum + Math.max(part, 0), 0),
      inputsTotal: Math.max(this.#count, this.#command.paths.length),
      bytesDone: running.reduce((sum, { bytes_done: bytes }) => sum + bytes, this.#doneBytes),
    });
  }

  /** Yields the inputs that paths name with their plans, and reports the others. */
  async *#planned(paths: readonly string[]): AsyncGenerator<{ index: number; path: string; plan: PlannedInput }> {
    const skipsSigned = (path: string) => this.#terminal.note(`${path}: left out, because it is named as an output.`);
    const leftOut = { count: 0, first: '' };
    const leavesOut = (path: string) => {
      leftOut.first ||= path;
      leftOut.count += 1;
    };
    const search = { ...this.#search, ...(this.#command.signs && { skipsSigned }), leavesOut };
    for await (const found of findInputs(paths, search)) {
      const index = this.#count++;
      try {
        if (found.problem !== undefined) throw found.problem;
        yield { index, path: found.path, plan: await this.#command.plan(found) };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        this.#report(found.path, failedEntry(index, error.toData()));
      }
    }
    if (leftOut.count > 0) {
      this.#terminal.note(
        `${leftOut.count} entries of folders were left out, the first of them ${leftOut.first}: links are not followed, and files must be of a format that can carry a manifest.`,
      );
    }
  }

  /** Groups planned inputs into requests. */
  async *#batches(paths: readonly string[]): AsyncGenerator<Batch, void, void> {
    const open = new Map<string, Batch>();
    let count = 0;
    for await (const { index, path, plan } of this.#planned(paths)) {
      const { input, outputName, operation, outputFolder } = plan;
      // Folders are large: each is a request of its own.
      const key = outputName === undefined ? `${operation} ${outputFolder}` : String(index);
      const batch = open.get(key) ?? { plan, inputs: [] };
      batch.inputs.push({ index, path, input });
      open.set(key, batch);
      count += 1;
      if (count < BATCH_SIZE) continue;
      yield* open.values();
      open.clear();
      count = 0;
    }
    yield* open.values();
  }
}

/** Groups paths by their top folder where they have no other folder in common: workers may write where outputs go, and not everywhere. */
function byTopFolder(paths: readonly string[], search: Search): readonly (readonly string[])[] {
  const local = paths.filter((path) => !isAddress(path));
  if (commonFolder(local, search) !== sep) return [paths];
  return [...Map.groupBy(paths, (path) => resolve(path).split(sep)[1]).values()];
}
