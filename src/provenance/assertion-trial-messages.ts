import type { CustomAssertion } from './manifest-author.ts';

/** What the service asks of the trial thread; one answer comes back for each. */
export interface TrialRequest {
  readonly id: number;
  readonly assertions: readonly CustomAssertion[];
}

/** `refusal` is null where the manifest carried the assertions; `index` is null where only all together are refused. */
export interface TrialAnswer {
  readonly id: number;
  readonly refusal: { readonly index: number | null; readonly problem: string } | null;
}
