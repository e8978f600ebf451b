import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { JobResultEntry } from '#contract/job.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { problemOf } from '#errors/system-problem.ts';
import type { FoundInput } from '../find-inputs.ts';
import { addRunOptions, type RunOptions } from '../run-options.ts';

interface VerifyOptions extends RunOptions {
  readonly report?: string;
  readonly rubrics?: string;
  readonly trust?: readonly string[];
}

export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify')
    .description('Verifies files and publications, also at http(s):// and s3:// addresses.')
    .argument('<paths...>', 'files, folders and addresses; - for paths on standard input, one a line')
    .option('--recursive', 'verify each media file and publication in folders')
    .option('--report <file>', 'write detailed reports to a file, a JSON list')
    .option('--rubrics <folder>', 'evaluate the rubrics in a folder')
    .option('--trust <file>', 'trust list, PEM; may be repeated', collect);
  addRunOptions(command).action(verify);
}

function collect(file: string, others: readonly string[] = []): readonly string[] {
  return [...others, file];
}

async function verify(given: string[], options: VerifyOptions): Promise<void> {
  const [{ namedPaths }, { runInputs }, { loadCommandConfig }] = await Promise.all([
    import('../find-inputs.ts'),
    import('../run-inputs.ts'),
    import('../run-options.ts'),
  ]);
  const paths = await namedPaths(given);
  const { config, configFile } = await loadCommandConfig(options);
  const { trust, input_resolvers: inputs } = config;
  const { report: file, rubrics, force = false } = options;
  const params = { ...(file !== undefined && { report: 'detailed' }), ...(rubrics !== undefined && { rubrics: true }) };
  const report = file === undefined ? null : ReportFile.create(file, force);
  try {
    await runInputs({
      options,
      paths,
      configFile,
      config: {
        ...config,
        trust: {
          ...trust,
          anchors: [...trust.anchors, ...(options.trust ?? []).map((each) => resolve(each))],
          ...(rubrics !== undefined && { rubrics_dir: resolve(rubrics) }),
        },
        // The usual credentials of AWS do, where the configuration says nothing.
        input_resolvers: { ...inputs, ...(paths.some(isS3) && { s3: inputs.s3 ?? { force_path_style: false } }) },
      },
      search: {},
      signs: false,
      output: null,
      plan: async (found) => ({ operation: 'verify', input: referenceTo(found), outputFolder: null, params }),
      describe,
      finished: (entry) => report?.add(entry),
    });
    report?.commit();
  } finally {
    report?.discard();
  }
}

function isS3(path: string): boolean {
  return /^s3:/i.test(path);
}

function referenceTo({ path, kind }: FoundInput): ApiInputRef {
  if (kind === 'file') return { type: 'local_file_path', path: resolve(path) };
  if (kind !== 'address') return { type: 'local_folder_path', path: resolve(path) };
  const { pathname = '' } = URL.parse(path) ?? {};
  if (!/(?:\/|\.m3u8?|\.mpd)$/i.test(pathname)) return { type: 'remote_file_url', url: path };
  // In S3 a publication is everything under a prefix, that of its playlist.
  return { type: 'remote_folder_url', url: isS3(path) ? path.replace(/[^/]*$/, '') : path };
}

function describe(path: string, { verification }: JobResultEntry): string {
  if (verification === undefined) return path;
  const { state, summary, rubrics = [] } = verification;
  const ofRubrics = rubrics.map(({ rubric, counts }) => {
    return `\n  ${rubric}: ${counts.true} true, ${counts.false} false, ${counts.warn} warn, ${counts.error} error`;
  });
  return `${path}: ${state}. ${summary}${ofRubrics.join('')}`;
}

/** A JSON list of results, which appears under its name when it is complete. */
class ReportFile {
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

  add(entry: object): void {
    writeSync(this.#file, `${this.#isEmpty ? '[\n' : ',\n'}${JSON.stringify(entry)}`);
    this.#isEmpty = false;
  }

  commit(): void {
    writeSync(this.#file, this.#isEmpty ? '[]\n' : '\n]\n');
    renameSync(this.#staged, this.#path);
  }

  /** Removes what was not committed. */
  discard(): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
    rmSync(this.#staged, { force: true });
  }
}
