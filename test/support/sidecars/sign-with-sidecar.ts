import type { C2paParams } from '#contract/signing.ts';
import type { InputContext, InputOutcome } from '#operations/operation.ts';
import { signVideo } from '#operations/registry.ts';
import { checkOutput, type OutputChecker } from '#provenance/official-reader.ts';
import { runInput } from '../run-input.ts';

/** The request of a signing with a sidecar, and what happens meanwhile. */
export interface Wishes extends Partial<Pick<InputContext, 'reached' | 'confirmLease'>> {
  readonly params?: C2paParams;
  /** Null: nothing is read back. */
  readonly outputChecker?: OutputChecker | null;
  readonly attempt?: number;
}

/** Signs a file of this host with a sidecar, as a worker does it. `home` gets `output` and `data`. */
export async function signWithSidecar(
  path: string,
  home: string,
  { params = {}, outputChecker = checkOutput, attempt = 1, ...context }: Wishes = {},
): Promise<InputOutcome> {
  const asked = {
    input: { type: 'local_file_path', path },
    params: { manifest: 'sidecar', ...params },
    attempt,
  } as const;
  return await runInput(signVideo, asked, home, { context, services: { outputChecker } });
}
