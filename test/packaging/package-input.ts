import type { PackageParams } from '#contract/package-request.ts';
import type { WarningReason } from '#errors/catalogue.ts';
import type { InputContext, InputOutcome } from '#operations/operation.ts';
import { packageAndSign, packageWithoutSigning } from '#operations/registry.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import type { ManifestAuthor } from '#provenance/manifest-author.ts';
import { runInput } from '../support/run-input.ts';

interface PackageOptions extends Partial<Pick<InputContext, 'signal' | 'reached' | 'progress'>> {
  /** The folder of data, scratch space and output. */
  readonly work?: string;
  readonly outputFolder?: string;
  /** Puts another sink in the place of the local one. */
  readonly sink?: (local: OutputSink) => OutputSink;
  /** Also signs what was packaged, without reading it back. */
  readonly sign?: boolean;
  readonly author?: ManifestAuthor;
}

/** The result of an input, and the reasons of its warnings. */
interface Packaged extends InputOutcome {
  readonly reasons: readonly WarningReason[];
}

/** Packages a folder as a worker does, and returns what the input became. */
export async function packageInput(
  folder: string,
  params: PackageParams = {},
  { work = `${folder}-work`, sign = false, outputFolder, sink, author, ...context }: PackageOptions = {},
): Promise<Packaged> {
  const outcome = await runInput(
    sign ? packageAndSign : packageWithoutSigning,
    { input: { type: 'local_folder_path', path: folder }, params },
    work,
    {
      context,
      ...(author !== undefined && { services: { author } }),
      ...(outputFolder !== undefined && { outputFolder }),
      ...(sink !== undefined && { sink }),
    },
  );
  return { ...outcome, reasons: outcome.warnings.map(({ reason }) => reason) };
}
