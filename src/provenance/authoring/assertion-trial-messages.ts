/** What the service hears of the trial process: that it has started, and then one answer for each request. */
export type TrialMessage = 'ready' | TrialAnswer;

/** `refusal` is null where the manifest carried the assertions. */
export interface TrialAnswer {
  readonly refusal: Refusal | null;
}

/** Why assertions are refused; `index` is null where no single one of them is at fault. */
export interface Refusal {
  readonly index: number | null;
  readonly problem: string;
}

/** What the checks of a request may use: the time of the process in milliseconds, and its memory in bytes. */
export interface CheckBudgets {
  readonly timeMs: number;
  readonly memoryBytes: number;
}

/** How a batch ended: with an answer, or with the end of the process, at a budget or by itself. */
export type TrialOutcome =
  | { readonly kind: 'answered'; readonly refusal: Refusal | null }
  | { readonly kind: 'exceeded'; readonly budget: 'time' | 'memory' }
  /** `how` ends the sentence "the process ended …". */
  | { readonly kind: 'process-ended'; readonly how: string };
