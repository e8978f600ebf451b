import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { JobResultEntry } from '#contract/job.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { stemOf } from '#outputs/output-path.ts';
import type { FoundInput } from '../find-inputs.ts';
import { addRunOptions, localPath, type RunOptions } from '../run-options.ts';

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
    .option('--report <file>', 'write detailed reports to a file, a JSON list', localPath)
    .option('--rubrics <folder>', 'evaluate the rubrics in a folder')
    .option('--trust <file>', 'trust list, PEM; may be repeated', collect);
  addRunOptions(command).action(verify);
}

function collect(file: string, others: readonly string[] = []): readonly string[] {
  return [...others, file];
}

async function verify(given: string[], options: VerifyOptions): Promise<void> {
  const [{ namedPaths }, { runInputs }, { loadCommandConfig }, { ReportFile }] = await Promise.all([
    import('../find-inputs.ts'),
    import('../run-inputs.ts'),
    import('../run-options.ts'),
    import('../report-file.ts'),
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

function describe(path: string, { input_name: name, verification }: JobResultEntry): string {
  if (verification === undefined) return path;
  const { state, summary, manifest_from: from, rubrics = [] } = verification;
  const ofRubrics = rubrics.map(({ rubric, counts }) => {
    return `\n  ${rubric}: ${counts.true} true, ${counts.false} false, ${counts.warn} warn, ${counts.error} error`;
  });
  const sidecar = from === 'sidecar' ? ` The manifest is in the sidecar ${stemOf(name ?? '')}.c2pa.` : '';
  return `${path}: ${state}. ${summary}${sidecar}${ofRubrics.join('')}`;
}
