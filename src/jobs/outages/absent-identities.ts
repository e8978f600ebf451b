import { dependencyOf, idOf, SIGNER } from '../dependencies.ts';
import { type NodeIdentities, problemOfIdentity } from '../identities.ts';
import type { JobEngine } from '../queue/job-queue.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Outage, Outages } from './outages.ts';

/** The interval of looking, in milliseconds. */
const LOOK_INTERVAL_MS = 5_000;

interface AbsentIdentitiesOptions {
  readonly own: NodeIdentities;
  readonly store: Pick<JobStore, 'identitiesBeside' | 'recordWaiting'>;
  readonly nodes: Pick<JobEngine, 'otherNodes'>;
  readonly outages: Pick<Outages, 'list' | 'declare' | 'withdraw'>;
  /** The time in which nodes that start together see each other. */
  readonly graceMs: number;
  /** Called when inputs may have waited for too long. */
  readonly changed: () => void;
}

/**
 * Declares the outages of identities that no input would meet: of those that this node has and cannot use, and of those that jobs
 * need and no living node has.
 */
export class AbsentIdentities {
  readonly #options: AbsentIdentitiesOptions;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #nowhere: ReadonlySet<string> = new Set();

  constructor(options: AbsentIdentitiesOptions) {
    this.#options = options;
  }

  /** Looks now, and again and again. */
  begin(): void {
    void this.look();
    this.#timer = setInterval(() => void this.look(), LOOK_INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The signers that no living node has had for a while: this one may lease what has waited for them for too long, and fails it. */
  get nowhere(): readonly string[] {
    const { outages, graceMs } = this.#options;
    const isNowhere = ({ dependency, sinceMs }: Outage) =>
      this.#nowhere.has(dependency) && Date.now() - sinceMs >= graceMs;
    return outages.list().flatMap((outage) => (isNowhere(outage) ? [outage.dependency] : []));
  }

  /** Looks now. Never rejects: while the store cannot be used, or the other nodes are not known, the outages stay as they are. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { own, outages, changed, store, nodes } = this.#options;
    const others = nodes.otherNodes();
    if (others === null) return;
    const elsewhere = new Set(others.flatMap(({ identities }) => identities.map(({ name }) => name)));
    const away = [...own.away.keys()];
    const needed = await store.identitiesBeside([...own.identities.map(({ name }) => name), ...away]);
    const nowhere = needed.filter((identity) => !elsewhere.has(identity));
    const absent = [...away, ...nowhere];
    for (const identity of absent) {
      const error = problemOfIdentity(identity, own);
      if (error !== null) outages.declare(signerOf(identity), error);
    }
    // Between the two, so that nothing of another node is leased.
    this.#nowhere = new Set(nowhere.map(signerOf));
    for (const { dependency, isDeclared } of outages.list()) {
      const { kind, name = '' } = dependencyOf(dependency) ?? {};
      // Another node has what an input met here before a reload.
      const isGone = isDeclared || own.identityOf(name) === null;
      if (kind === SIGNER && name !== '' && isGone && !absent.includes(name)) outages.withdraw(dependency);
    }
    for (const identity of absent)
      if (!elsewhere.has(identity)) await store.recordWaiting(signerOf(identity), new Date().toISOString());
    if (absent.length > 0) changed();
  }
}

function signerOf(identity: string): string {
  return idOf({ kind: SIGNER, name: identity });
}
