import type { Log } from '#telemetry/logger.ts';
import type { OtherNode } from '#telemetry/metrics-state.ts';
import type { SeenNode } from '../store/postgres/node-records.ts';

/** The time after its last heartbeat for which a node counts as alive, in milliseconds. */
export const EXPIRY_MS = 10_000;

/** The time for which a lost node is told of, in milliseconds; one that starts removes the records of all lost ones before. */
export const LOST_KEPT_MS = 60 * 60_000;

/**
 * Watches the heartbeats of the other nodes, and warns once of each that stops without having stopped in order. After this node
 * could not reach the database, none counts as lost until all have had the time to write a heartbeat again.
 */
export class NodeWatch {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #lost = new Set<string>();
  #others: readonly OtherNode[] = [];
  #sawAtMs: number;
  #judgesFromMs: number;

  /** `now`: milliseconds by a monotonic clock. */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
    this.#sawAtMs = now();
    this.#judgesFromMs = now() + EXPIRY_MS;
  }

  /** The other nodes; null where their heartbeats could not be read for `EXPIRY_MS`. */
  get others(): readonly OtherNode[] | null {
    return this.#now() - this.#sawAtMs > EXPIRY_MS ? null : this.#others;
  }

  /** Takes what a heartbeat of this node saw of the others. */
  saw(seen: readonly SeenNode[]): void {
    const nowMs = this.#now();
    if (nowMs - this.#sawAtMs > EXPIRY_MS / 2) this.#judgesFromMs = nowMs + EXPIRY_MS;
    this.#sawAtMs = nowMs;
    const mayJudge = nowMs >= this.#judgesFromMs;
    this.#others = seen.map((node) => ({
      name: node.name,
      seenAtMs: node.seenAtMs,
      isAlive: node.silentMs <= EXPIRY_MS || (!mayJudge && !this.#lost.has(node.nodeId)),
    }));
    for (const node of seen) this.#tell(node, mayJudge);
    for (const nodeId of this.#lost) if (!seen.some((node) => node.nodeId === nodeId)) this.#lost.delete(nodeId);
  }

  #tell({ nodeId, name, seenAtMs, silentMs }: SeenNode, mayJudge: boolean): void {
    if (silentMs <= EXPIRY_MS) {
      if (this.#lost.delete(nodeId)) this.#log.info({ node: name }, 'a node that seemed lost is back');
    } else if (mayJudge && !this.#lost.has(nodeId)) {
      this.#lost.add(nodeId);
      const fields = { node: name, seen_at: new Date(seenAtMs).toISOString() };
      this.#log.warn(fields, 'a node was lost: its heartbeat stopped, and others run its inputs');
    }
  }
}
