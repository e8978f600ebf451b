import { join } from 'node:path';
import type { Config } from '#config/config.ts';
import type { Log } from '#telemetry/logger.ts';
import { fingerprintOf, NO_STAPLES, type StapleSource, Staples } from '../staples.ts';
import type { TrustSource } from '../trust-lists.ts';
import type { HeldResponse } from './held-response.ts';

interface StapleStoreOptions {
  readonly config: Pick<Config, 'signing' | 'jobs'>;
  readonly trust: TrustSource;
  readonly log: Log;
}

/** Keeps an OCSP response of each signing certificate (`signing.ocsp`), in memory and in the data folder, and renews it. */
export class StapleStore implements StapleSource {
  readonly #options: StapleStoreOptions;
  readonly #held = new Map<string, HeldResponse>();
  readonly #listeners: ((staples: Staples) => void)[] = [];
  #current = NO_STAPLES;
  #isClosed = false;
  /** Settles when the last call of `follow` is done: one runs after the other. */
  #following = Promise.resolve();

  constructor(options: StapleStoreOptions) {
    this.#options = options;
  }

  get current(): Staples {
    return this.#current;
  }

  /** Calls the listener with the responses each time that one has been replaced. */
  onChange(listener: (staples: Staples) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Keeps the responses of these certificates, each chain in DER and the leaf first, and renews no others. Resolves when each has a
   * response, or its responder has been asked once.
   */
  follow(chains: readonly (readonly Buffer[])[]): Promise<void> {
    this.#following = this.#following.then(() => this.#follow(chains));
    return this.#following;
  }

  close(): void {
    this.#isClosed = true;
    for (const held of this.#held.values()) held.close();
  }

  async #follow(chains: readonly (readonly Buffer[])[]): Promise<void> {
    const { config, trust, log } = this.#options;
    const wanted = new Map(chains.map((chain) => [fingerprintOf(chain[0] as Buffer), chain]));
    for (const [name, held] of this.#held) {
      // Inputs that run finish with the certificate that they began with.
      if (!wanted.has(name)) held.close();
      else if (!held.isClosed) wanted.delete(name);
    }
    const { HeldResponse } = await import('./held-response.ts');
    const opening = [...wanted].map(async ([name, chain]) => {
      const file = join(config.jobs.data_dir, 'ocsp', `${name}.der`);
      const held = await HeldResponse.open({ chain, trust, log, file, changed: () => this.#publish() });
      this.#held.set(name, held);
      if (this.#isClosed) held.close();
    });
    await Promise.all(opening);
    this.#publish();
  }

  #publish(): void {
    const certificates = Object.fromEntries(Array.from(this.#held, ([name, { status }]) => [name, status]));
    this.#current = new Staples({ isRequired: this.#options.config.signing.ocsp === 'require', certificates });
    for (const listener of this.#listeners) listener(this.#current);
  }
}
