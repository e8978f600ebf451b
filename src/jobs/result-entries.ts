import type { JobResultEntry } from '#contract/job.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { OperationOutcome } from '#operations/operation.ts';

/** The result of one input, as the store keeps it. Callers see it with the name of the input (`read-jobs.ts`). */
export type ResultEntry = JobResultEntry;

/** Returns the outputs that a result names, each once. */
export function outputPathsIn({ output_path: output, sidecar_path: sidecar }: ResultEntry): readonly string[] {
  return [...new Set([output, sidecar])].filter((path) => path !== undefined);
}

export function succeededEntry(inputIndex: number, outcome: OperationOutcome): ResultEntry {
  const { outputPath, warnings } = outcome;
  return {
    input_index: inputIndex,
    status: 'succeeded',
    ...(outputPath !== undefined && { output_path: outputPath }),
    ...('sidecarPath' in outcome && outcome.sidecarPath !== undefined && { sidecar_path: outcome.sidecarPath }),
    ...('verification' in outcome && { verification: outcome.verification }),
    ...(warnings.length > 0 && {
      warnings: warnings.map(({ message }) => message),
      warning_details: warnings.map(({ reason, details }) => ({ ...snakeCased(plainJson(details)), reason })),
    }),
  };
}

export function failedEntry(inputIndex: number, data: AppErrorData): ResultEntry {
  const error = AppError.fromData(data);
  const { field } = error.location;
  return {
    input_index: inputIndex,
    status: 'failed',
    error: error.callerMessage,
    error_code: error.code,
    error_details: {
      ...(error.isConfidential ? {} : snakeCased(plainJson(error.details))),
      ...(field !== undefined && { field }),
      reason: error.reason,
    },
  };
}

/** Returns the entry of an input whose job was cancelled before it had succeeded. */
export function cancelledEntry(inputIndex: number): ResultEntry {
  return { input_index: inputIndex, status: 'cancelled' };
}

/** Converts names of the code to those of the API: `fileCount` becomes `file_count`. */
function snakeCased(details: object): object {
  const named = Object.entries(details).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(named);
}

/** Converts details to plain JSON. A 64-bit size becomes a text, because it must not prevent a result from being recorded. */
function plainJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part)));
}
