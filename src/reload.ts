import type { Config } from '#config/config.ts';
import { requireOptionalPackages } from '#config/optional-packages.ts';
import { takeOver } from '#config/take-over.ts';
import type { ReloadResponse } from '#contract/service.ts';
import { AppError } from '#errors/app-error.ts';
import { type NodeIdentities, shownIdentities } from '#jobs/identities.ts';
import type { Jobs } from '#jobs/jobs.ts';
import type { Signers } from '#provenance/signers.ts';
import type { TrustStore } from '#provenance/trust-store.ts';
import type { Log } from '#telemetry/logger.ts';

interface ReloadsParts {
  /** The configuration of the start. */
  readonly config: Config;
  /** Reads the configuration again. */
  readonly load: () => Promise<Config>;
  /** Undefined on a node that only takes jobs. */
  readonly identities: (NodeIdentities & Pick<Signers, 'reload'>) | undefined;
  readonly trust: Pick<TrustStore, 'prepare' | 'current'>;
  /** Called when other identities are in force. */
  readonly identitiesChanged: Jobs['identitiesChanged'];
  readonly log: Log;
}

/**
 * The configuration in force: identities, tokens, callers and trust lists are replaced while the service runs. Inputs that run go on
 * with what they began with. A configuration that cannot be used changes nothing.
 */
export class Reloads {
  readonly #parts: ReloadsParts;
  #config: Config;
  /** One after the other: each begins with what the one before put into force. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: ReloadsParts) {
    this.#parts = parts;
    this.#config = parts.config;
  }

  get config(): Config {
    return this.#config;
  }

  /** Reads the configuration again, and returns what is in force then. Throws `RELOAD_REFUSED`. */
  reload(by: { readonly caller: string | null } | { readonly signal: string }): Promise<ReloadResponse> {
    const reloaded = this.#last.then(() => this.#reload(by));
    this.#last = reloaded.catch(() => undefined);
    return reloaded;
  }

  async #reload(by: object): Promise<ReloadResponse> {
    const { log, identitiesChanged } = this.#parts;
    try {
      const needsRestart = await this.#replace();
      const answer = this.#answer(needsRestart);
      const identities = answer.identities?.map(({ name }) => name);
      const fields = { ...by, identities, tokens: answer.tokens, callers: answer.callers };
      log.info({ ...fields, needs_restart: needsRestart }, 'configuration reloaded');
      await identitiesChanged();
      return answer;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { reason: cause, message: problem } = error;
      log.warn(
        { ...by, reason: cause, problem },
        'the configuration cannot be reloaded, and everything stays as it was',
      );
      throw new AppError('RELOAD_REFUSED', { cause, problem }, { cause: error });
    }
  }

  /** Does all that may fail before it changes anything. */
  async #replace(): Promise<readonly string[]> {
    const { load, identities, trust } = this.#parts;
    const { config, needsRestart } = takeOver(this.#config, await load());
    requireOptionalPackages(config);
    const replaceTrust = await trust.prepare(config.trust);
    await identities?.reload(config);
    replaceTrust();
    this.#config = config;
    return needsRestart;
  }

  #answer(needsRestart: readonly string[]): ReloadResponse {
    const { identities, trust } = this.#parts;
    const { auth } = this.#config;
    const { signers, authorities } = trust.current.data;
    return {
      ...(identities !== undefined && { identities: shownIdentities(identities, this.#config) }),
      tokens: auth.tokens.length,
      callers: Object.keys(auth.callers),
      trust_lists: [...signers, ...authorities].map(({ name }) => name),
      needs_restart: needsRestart,
    };
  }
}
