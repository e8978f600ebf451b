import type { Config } from '#config/config.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { AssertionTrial } from '#provenance/authoring/assertion-trial.ts';

/** What the requests of all operations have in common; `params` is the operation's own. */
export interface OperationRequest {
  readonly inputs: readonly ApiInputRef[];
  readonly output?: ApiOutputSpec | null | undefined;
  readonly params?: unknown;
  readonly callback_url?: string | null | undefined;
}

/** What an admission may look at beside the request. */
export interface AdmissionContext {
  readonly config: Config;
  readonly checkAssertions: AssertionTrial['checkAssertions'];
  readonly signal: AbortSignal;
}
