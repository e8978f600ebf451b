import type { VerifyParams } from '#contract/verify-request.ts';
import { stemOf } from '#outputs/output-path.ts';
import type { InputContext, InputWork, OperationServices } from '../operation.ts';

/** Names the report of an input: `interview_verification.json`. */
export function reportLeaf(name: string): string {
  return `${stemOf(name)}_verification.json`;
}

/** How much of a verification is told: in the answer, or all of it. */
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
  const destination = outputs.fileDestination(work.output, reportLeaf(name));
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
