import type { DependencyKind } from '#errors/entry.ts';

/** The state that is read for each request of the metrics. Counts from the store are of all nodes together. */
export interface StoreState {
  /** True where it can be written. */
  readonly works: boolean;
  /** Inputs by state; those that have ended are counted as they end. */
  readonly inputs: Readonly<Record<'queued' | 'reserved' | 'running', number>>;
  /** The age of the oldest waiting input, in seconds; 0 where none waits. */
  readonly oldestWaitSeconds: number;
  readonly callbacksWaiting: number;
  /** Inputs that need a dependency that is away for this node, or wait for space on a disk alone; kinds without any are left out. */
  readonly inputsWaitingFor: Readonly<Partial<Record<DependencyKind, number>>>;
}

/** Counts while the store cannot be read. */
export const UNKNOWN_STATE: StoreState = {
  works: false,
  inputs: { queued: Number.NaN, reserved: Number.NaN, running: Number.NaN },
  oldestWaitSeconds: Number.NaN,
  callbacksWaiting: Number.NaN,
  inputsWaitingFor: {},
};

/** The state of this node, which is known without asking anything else. */
export interface NodeState {
  readonly inputsRunning: number;
  readonly workerProcesses: number;
  /** Inputs that may wait (`worker.queue_capacity`). */
  readonly queueCapacity: number;
  /** Kinds of dependencies that are away. */
  readonly away: readonly DependencyKind[];
  /** The end of each identity that the node signs with, in milliseconds since 1970; null for one that cannot be used now. */
  readonly identities: readonly { readonly name: string; readonly endsAtMs: number | null }[];
  /** The other nodes that share the database; null while it cannot be reached. */
  readonly otherNodes: readonly OtherNode[] | null;
}

/** Another node that shares the database. */
export interface OtherNode {
  /** Host and process. */
  readonly name: string;
  /** False where its heartbeat stopped, and it did not stop in order. */
  readonly isAlive: boolean;
  /** The last heartbeat, by the clock of the database: milliseconds since 1970. */
  readonly seenAtMs: number;
}

/** The space of the file system of a folder, in bytes. */
export interface DiskSpace {
  /** Without what the system reserves. */
  readonly freeBytes: number;
  readonly sizeBytes: number;
}
