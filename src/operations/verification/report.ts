import type { Verification } from '#contract/verification.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import { type ReadableAsset, readInWasm } from '#provenance/reader-threads.ts';
import { evaluateRubrics, findRubrics } from '#provenance/rubrics.ts';
import type { InputContext, InputWork, OperationServices } from '../operation.ts';
import { reportLeaf } from '../output-names.ts';

/** The extent of a description: as much as the answer has, or all of it. */
export type ReportKind = 'summary' | 'detailed' | 'full';

/** Returns how much the answer to a request tells. */
export function answerKind({ report }: VerifyParams): ReportKind {
  return report === 'detailed' ? 'detailed' : 'summary';
}

/** Writes the full report of an input where its request says so. Returns its destination; null where it does not. */
export async function writeReport(
  name: string,
  report: () => object,
  work: InputWork,
  context: InputContext,
  { outputs }: OperationServices,
): Promise<string | null> {
  if (work.output === null) return null;
  const { signal, scratch } = context;
  const destination = outputs.destinationOf(work.output, reportLeaf(name));
  await context.reserveOutputPath(destination);
  const bytes = Buffer.from(`${JSON.stringify(report(), null, 2)}\n`);
  const sink = await outputs.stageFile(destination, bytes.length, work, signal, scratch);
  try {
    await sink.write(bytes, 0, signal);
    await sink.seal(signal);
    await context.confirmLease();
    await sink.commit(signal);
  } catch (error) {
    await sink.discard();
    throw error;
  }
  context.reached('delivered');
  return sink.destination;
}

/** Characters of crJSON in an answer; a report that is written has all of it. */
const MAX_CRJSON_CHARACTERS = 512 * 1024;

/** Makes the parts of a verification that a request asks for beside the verdict. */
type Forensics = (kind: ReportKind) => Pick<Verification, 'rubrics' | 'crjson' | 'crjson_omitted'>;

/**
 * Reads an asset as crJSON and evaluates rubrics over it, where the request asks for either. `asset` says why where the
 * reader has no way to it. Throws the errors of rubrics.
 */
export async function forensicsOf(
  asset: () => Promise<ReadableAsset | { readonly problem: string }>,
  { report, rubrics }: VerifyParams,
  { signal, scratch }: InputContext,
  { rubricsDir }: OperationServices,
  anchors: string | null,
): Promise<Forensics> {
  if (report !== 'crjson' && rubrics === undefined) return () => ({});
  const found = await asset();
  if ('problem' in found) return () => ({ crjson_omitted: found.problem });
  const answer = await scratch.withHeartbeats(() => readInWasm({ answer: 'crjson', asset: found, anchors }, signal));
  if ('problem' in answer) return () => ({ crjson_omitted: `The reader gives no crJSON: ${answer.problem}` });
  const crjson: unknown = JSON.parse(answer.text);
  const evaluated =
    rubrics === undefined || rubricsDir === undefined
      ? {}
      : { rubrics: await evaluateRubrics(rubricsDir, await findRubrics(rubricsDir, rubrics), crjson) };
  return (kind) => {
    if (report !== 'crjson') return evaluated;
    if (kind === 'full' || answer.text.length <= MAX_CRJSON_CHARACTERS) return { ...evaluated, crjson };
    const crjson_omitted = `It has ${answer.text.length} characters; ${MAX_CRJSON_CHARACTERS} are answered. A report that is written has it.`;
    return { ...evaluated, crjson_omitted };
  };
}
