import { stemOf } from '#outputs/output-path.ts';

/** Names the report of an input: `interview_verification.json`. */
export function reportLeaf(name: string): string {
  return `${stemOf(name)}_verification.json`;
}
