/** The sender of a request. */
export interface Caller {
  /** The name that its jobs are recorded under; null where no tokens are set. */
  readonly name: string | null;
  /** Sees and controls the jobs of all callers. */
  readonly isAdmin: boolean;
}

/** The caller of all requests when no tokens are configured, who sees all jobs. */
export const EVERYBODY: Caller = { name: null, isAdmin: true };

/** The jobs that a caller may see: those of one name, or all when there is none. */
export interface JobScope {
  readonly caller?: string;
}

/** Returns the jobs that a caller may know of. */
export function scopeOf({ name, isAdmin }: Caller): JobScope {
  return isAdmin ? {} : { caller: name ?? '' };
}
