import type { Jobs } from '#jobs/jobs.ts';

/** What the routes need of the jobs; starting and stopping them is the business of whoever made them. */
export type JobService = Pick<
  Jobs,
  'submit' | 'recall' | 'find' | 'whenEnded' | 'cancel' | 'list' | 'events' | 'healthy' | 'readiness'
>;
