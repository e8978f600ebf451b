import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { problemOf } from '#errors/system-problem.ts';

/** A JSON list of results, which appears under its name when it is complete. */
export class ReportFile {
  readonly #path: string;
  readonly #staged: string;
  readonly #file: number;
  #isEmpty = true;
  #isOpen = true;

  private constructor(path: string, staged: string, file: number) {
    this.#path = path;
    this.#staged = staged;
    this.#file = file;
  }

  /** Throws `OUTPUT_EXISTS` or `OUTPUT_FAILED`. */
  static create(given: string, replaces: boolean): ReportFile {
    const path = resolve(given);
    if (!replaces && existsSync(path)) throw new AppError('OUTPUT_EXISTS', { path: given });
    const staged = join(dirname(path), `.attestream-${randomUUID()}`);
    try {
      return new ReportFile(path, staged, openSync(staged, 'wx'));
    } catch (cause) {
      throw new AppError('OUTPUT_FAILED', { path: given, problem: problemOf(cause) }, { cause });
    }
  }

  /** Throws `OUTPUT_FAILED`. */
  add(entry: object): void {
    this.#change(() => writeSync(this.#file, `${this.#isEmpty ? '[\n' : ',\n'}${JSON.stringify(entry)}`));
    this.#isEmpty = false;
  }

  /** Throws `OUTPUT_FAILED`. */
  commit(): void {
    this.#change(() => {
      writeSync(this.#file, this.#isEmpty ? '[]\n' : '\n]\n');
      renameSync(this.#staged, this.#path);
    });
  }

  #change(write: () => void): void {
    try {
      write();
    } catch (cause) {
      throw new AppError('OUTPUT_FAILED', { path: this.#path, problem: problemOf(cause) }, { cause });
    }
  }

  /** Removes what was not committed. */
  discard(): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
    rmSync(this.#staged, { force: true });
  }
}
