/** What the service hears of the trial process: that it has started, and then one answer for each request. */
export type TrialMessage = 'ready' | TrialAnswer;

/** `refusal` is null where the manifest carried the assertions; `index` is null where only all together are refused. */
export interface TrialAnswer {
  readonly refusal: { readonly index: number | null; readonly problem: string } | null;
}
