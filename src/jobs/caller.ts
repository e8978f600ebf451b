/** Who sends a request, as its jobs know it. */
export interface Caller {
  /** The name that its jobs are recorded under; null where no tokens are set. */
  readonly name: string | null;
  /** Sees and controls the jobs of all callers. */
  readonly isAdmin: boolean;
}

/** Where no tokens are set, everybody is one caller, who sees all jobs. */
export const EVERYBODY: Caller = { name: null, isAdmin: true };

/** Which jobs a caller may know of: those of one name, or all where there is none. */
export interface JobScope {
  readonly caller?: string;
}

/** Returns the jobs that a caller may know of. */
export function scopeOf({ name, isAdmin }: Caller): JobScope {
  return isAdmin ? {} : { caller: name ?? '' };
}
