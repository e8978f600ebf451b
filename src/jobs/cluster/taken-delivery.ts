import type { ClaimedInput, JobRequest } from '../store/claim-inputs.ts';
import type { Delivery } from './deliveries.ts';

/** A delivery that this node took. */
export interface TakenDelivery {
  readonly delivery: Delivery;
  /** Null where there is nothing left to do. */
  readonly claim: ClaimedInput | null;
  /** Where the job of the claim has no other input. */
  readonly requestOfAlone: JobRequest | null;
  /** Whether something is to be erased from the record of its job when that ends. */
  readonly hasUrlSecrets: boolean;
  readonly jobEnded: boolean;
  /** The clock's time before the database was asked. */
  readonly askedAtMs: number;
}
