import type { AppError } from '#errors/app-error.ts';
import { dependencyOf, idOf, SIGNER } from '../dependencies.ts';
import { absentError, awayError, type NodeIdentities } from '../node-identities.ts';
import type { JobEngine } from '../queue/job-queue.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Outages } from './outages.ts';

/** The interval of looking, in milliseconds. */
const LOOK_INTERVAL_MS = 5_000;

interface AbsentIdentitiesOptions {
  /** Null on a node that signs nothing. */
  readonly own: NodeIdentities | null;
  readonly store: Pick<JobStore, 'identitiesBeside'>;
  readonly nodes: Pick<JobEngine, 'otherIdentities'>;
  readonly outages: Pick<Outages, 'list' | 'declare' | 'withdraw'>;
  /** Called when this node has other identities than before. */
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
  #usable: string;

  constructor(options: AbsentIdentitiesOptions) {
    this.#options = options;
    this.#usable = usableNow(options.own);
  }

  /** Looks now, and again and again. */
  begin(): void {
    void this.look();
    this.#timer = setInterval(() => void this.look(), LOOK_INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Looks now. Never rejects: while the store cannot be used, the outages stay as they are. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { own, outages, changed } = this.#options;
    const absent = await this.#absent();
    for (const [identity, error] of absent) outages.declare(idOf({ kind: SIGNER, name: identity }), error);
    for (const { dependency, isDeclared } of outages.list()) {
      const { kind, name = '' } = dependencyOf(dependency) ?? {};
      // Another node has what an input met here before a reload.
      const isGone = isDeclared || own?.identityOf(name) === null;
      if (kind === SIGNER && name !== '' && isGone && !absent.has(name)) outages.withdraw(dependency);
    }
    const usable = usableNow(own);
    if (usable !== this.#usable) changed();
    this.#usable = usable;
  }

  async #absent(): Promise<ReadonlyMap<string, AppError>> {
    const { own, store, nodes } = this.#options;
    const away = [...(own?.away ?? [])].map(([identity, error]) => [identity, awayError(identity, error)] as const);
    const present = (own?.identities ?? []).map(({ name }) => name);
    const needed = await store.identitiesBeside([...present, ...away.map(([identity]) => identity)]);
    const others = needed.length === 0 ? [] : ((await nodes.otherIdentities?.()) ?? []);
    const nowhere = needed.filter((identity) => others.every(({ name }) => name !== identity));
    return new Map([...away, ...nowhere.map((identity) => [identity, absentError(identity)] as const)]);
  }
}

function usableNow(own: NodeIdentities | null): string {
  return (own?.identities ?? []).map(({ name }) => name).join();
}
