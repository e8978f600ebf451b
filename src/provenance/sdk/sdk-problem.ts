import { isSystemError, problemOf } from '#errors/system-problem.ts';

const MAX_PROBLEM_CHARACTERS = 300;

/** The WASM reader puts the stack of an error of JavaScript into its message. */
const STACK_FRAME = /\n\s+at [^\n]*/g;

/**
 * Returns the message of an error of the SDK or the system on one line, cut to 300 characters. Such messages hold no
 * secrets of ours; stacks, which name files of this host, are left out.
 */
export function sdkProblem(error: unknown): string {
  if (isSystemError(error)) return problemOf(error);
  const text = error instanceof Error ? error.message : String(error);
  const line = text.replaceAll(STACK_FRAME, '').replace(/\s+/g, ' ').trim();
  return line.length > MAX_PROBLEM_CHARACTERS ? `${line.slice(0, MAX_PROBLEM_CHARACTERS)}…` : line;
}
