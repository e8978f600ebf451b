import { createHash } from 'node:crypto';
import { type BigIntStats, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join, parse, resolve } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isSystemError } from '#errors/system-problem.ts';
import { holdDataFolder } from '#jobs/data-folder.ts';
import { isSigned } from './find-inputs.ts';

/** The time that an entry has to lie still, so that it is not still being written. */
const STILL_MS = 5_000;

const DONE = 'done';
const FAILED = 'failed';

/** An entry of a watched folder, in the state in which it is signed. */
export interface WatchedEntry {
  readonly path: string;
  /** Differs as soon as the entry does. */
  readonly state: string;
  /** The folder of its output until that is complete: of its own, so that an output is found again after a restart. */
  readonly stagingFolder: string;
}

interface Look {
  readonly state: string;
  readonly sinceMs: number;
}

/**
 * A folder whose files and folders are signed once each. An output is made in a staging folder below that of the outputs, which is
 * named after the state of the entry; then the entry moves to `done`, and the output to its place. Each step is a rename, and
 * `recover` goes on where a killed process stopped.
 */
export class WatchedFolder {
  readonly path: string;
  /** Holds the staging folders of entries. */
  readonly stagingRoot: string;
  readonly #output: string;
  readonly #replaces: boolean;
  readonly #unlock: () => void;
  readonly #looks = new Map<string, Look>();

  private constructor(path: string, output: string, replaces: boolean, unlock: () => void) {
    this.path = path;
    this.#unlock = unlock;
    this.#output = output;
    this.#replaces = replaces;
    const id = createHash('sha256').update(path).digest('hex').slice(0, 16);
    this.stagingRoot = join(output, `.attestream-watch-${id}`);
  }

  /**
   * Opens a folder for one process, and makes what it needs. Throws `SOURCE_NOT_FOUND`, `SOURCE_NOT_FOLDER`, `FOLDER_WATCHED`,
   * or `WATCH_OUTPUT_INVALID`.
   */
  static async open(folder: string, output: string, replaces: boolean): Promise<WatchedFolder> {
    const given = resolve(folder);
    const stats = statSync(given, { throwIfNoEntry: false });
    if (stats === undefined) throw new AppError('SOURCE_NOT_FOUND', { path: given });
    if (!stats.isDirectory()) throw new AppError('SOURCE_NOT_FOLDER', { path: given });
    await mkdir(output, { recursive: true });
    const [path, realOutput] = [realpathSync(given), realpathSync(output)];
    if (path === realOutput) throw new AppError('WATCH_OUTPUT_INVALID', { path });
    const unlock = await lockOf(path);
    const watched = new WatchedFolder(path, realOutput, replaces, unlock);
    for (const made of [join(path, DONE), join(path, FAILED), watched.stagingRoot])
      await mkdir(made, { recursive: true });
    return watched;
  }

  /** Leaves the folder to other processes. */
  close(): void {
    this.#unlock();
  }

  /** Finishes entries whose outputs were complete when an earlier process ended. Resolves with the outputs. */
  async recover(): Promise<readonly string[]> {
    const outputs: string[] = [];
    const entries = this.#names().flatMap((name) => this.#entryOf(name) ?? []);
    for (const id of await readdir(this.stagingRoot)) {
      const stagingFolder = join(this.stagingRoot, id);
      const entry = entries.find((each) => each.stagingFolder === stagingFolder);
      if ((await completeIn(stagingFolder)) === null) await rm(stagingFolder, { recursive: true, force: true });
      else if (entry !== undefined) outputs.push(await this.finish(entry));
      else outputs.push(await this.#publish(stagingFolder));
    }
    return outputs;
  }

  /** Looks at the folder. Returns the entries that have not changed for five seconds; `atMs` is the time on any steady clock. */
  look(atMs: number): readonly WatchedEntry[] {
    const entries = this.#names().flatMap((name) => this.#entryOf(name) ?? []);
    const paths = new Set(entries.map(({ path }) => path));
    for (const path of this.#looks.keys()) if (!paths.has(path)) this.#looks.delete(path);
    return entries.filter(({ path, state }) => {
      const before = this.#looks.get(path);
      if (before?.state === state) return atMs - before.sinceMs >= STILL_MS;
      this.#looks.set(path, { state, sinceMs: atMs });
      return false;
    });
  }

  /** Tells whether an entry is not any more what it was. */
  hasChanged({ path, state }: WatchedEntry): boolean {
    return stateOf(path) !== state;
  }

  /** Moves a signed entry to `done`, and its output to its place, whose path it returns. Throws `OUTPUT_EXISTS`. */
  async finish(entry: WatchedEntry): Promise<string> {
    await this.#requireFree(entry.stagingFolder);
    await rename(entry.path, freePath(join(this.path, DONE), basename(entry.path)));
    return await this.#publish(entry.stagingFolder);
  }

  /** Moves an entry to `failed`, with the reason in a file beside it. */
  async fail({ path, stagingFolder }: WatchedEntry, reason: string): Promise<void> {
    await rm(stagingFolder, { recursive: true, force: true });
    const target = freePath(join(this.path, FAILED), basename(path));
    await writeFile(`${target}.txt`, `${reason}\n`);
    await rename(path, target);
  }

  async #requireFree(stagingFolder: string): Promise<void> {
    const name = await completeIn(stagingFolder);
    if (name === null || this.#replaces) return;
    const path = join(this.#output, name);
    if (exists(path)) throw new AppError('OUTPUT_EXISTS', { path });
  }

  async #publish(stagingFolder: string): Promise<string> {
    const name = (await completeIn(stagingFolder)) ?? '';
    const target = join(this.#output, name);
    if (this.#replaces) await rm(target, { recursive: true, force: true });
    await rename(join(stagingFolder, name), target);
    await rm(stagingFolder, { recursive: true, force: true });
    return target;
  }

  /** Returns the names of entries. Hidden ones, what is named as an output, and the folders of results are none. */
  #names(): readonly string[] {
    return readdirSync(this.path).filter(
      (name) =>
        !(name.startsWith('.') || name === DONE || name === FAILED || isSigned(name)) &&
        join(this.path, name) !== this.#output,
    );
  }

  #entryOf(name: string): WatchedEntry | null {
    const path = join(this.path, name);
    const state = stateOf(path);
    if (state === null) return null;
    const id = createHash('sha256').update(`${name}\n${state}`).digest('hex').slice(0, 32);
    return { path, state, stagingFolder: join(this.stagingRoot, id) };
  }
}

async function lockOf(path: string): Promise<() => void> {
  try {
    return await holdDataFolder(join(path, '.attestream-watch'));
  } catch (cause) {
    if (!(cause instanceof AppError) || cause.reason !== 'STORE_IN_USE') throw cause;
    const { pid } = cause.details as { readonly pid: number | null };
    throw new AppError('FOLDER_WATCHED', { path, pid }, { cause });
  }
}

/** Returns the name of the complete output in a staging folder; null where there is none. */
async function completeIn(folder: string): Promise<string | null> {
  return (await readdir(folder)).find((name) => !name.startsWith('.')) ?? null;
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Returns a path in a folder that nothing has, under the name or the name with a number. */
function freePath(folder: string, name: string): string {
  const { name: stem, ext } = parse(name);
  let path = join(folder, name);
  for (let number = 2; exists(path); number += 1) path = join(folder, `${stem} (${number})${ext}`);
  return path;
}

/** Returns a text that differs when a file, or one in a folder, was changed; null where it is gone meanwhile. */
function stateOf(path: string): string | null {
  try {
    const stats = lstatSync(path, { bigint: true });
    if (!stats.isDirectory()) return stateOfFile(stats);
    const names = readdirSync(path, { recursive: true, encoding: 'utf8' }).sort();
    const states = names.map((name) => `${name} ${stateOfFile(lstatSync(join(path, name), { bigint: true }))}`);
    return createHash('sha256').update(states.join('\n')).digest('hex');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return null;
  }
}

function stateOfFile({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`;
}
