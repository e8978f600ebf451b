import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import type { VerificationOutcome } from '#operations/operation.ts';
import { verify } from '#operations/registry.ts';
import { type TrustSettings, TrustStore } from '#provenance/trust-store.ts';
import { NO_LOG } from '../jobs/test-jobs.ts';
import { runInput } from '../run-input.ts';

const NO_LISTS: TrustSettings = {};

/** The settings of a verification beside its input. */
export interface Asked {
  readonly params?: VerifyParams;
  readonly output?: ApiOutputSpec;
  readonly rubricsDir?: string;
  readonly trust?: TrustSettings;
}

/** Verifies an input of this host as a worker does it. `folder` takes scratch space and outputs. */
export async function verifyInput(
  input: ApiInputRef,
  folder: string,
  { params = {}, output, rubricsDir, trust = NO_LISTS }: Asked = {},
): Promise<VerificationOutcome> {
  const lists = await TrustStore.open({ settings: trust, log: NO_LOG });
  const services = { trust: lists, ...(rubricsDir !== undefined && { rubricsDir }) };
  try {
    return await runInput(verify, { input, output: output ?? null, params }, folder, { services });
  } finally {
    lists.close();
  }
}
