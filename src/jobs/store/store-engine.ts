import type { Dialect } from 'kysely';
import type { Database } from './tables.ts';

/** What differs between the databases that the job store runs on; everything else is the same code. */
export interface StoreEngine {
  readonly dialect: Dialect;
  /** What holds the tables, for messages: a file. */
  readonly place: string;
  /** Inserts one queued input for each element of a JSON array, in order, as one statement: a batch may have 10,000. */
  insertInputs(db: Database, jobId: string, inputsJson: string): Promise<void>;
}
