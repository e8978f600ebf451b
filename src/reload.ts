import type { Config } from '#config/config.ts';
import { requireOptionalPackages } from '#config/optional-packages.ts';
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

/** Keys of `signing` that say which identities there are; a reload takes them over. */
const IDENTITY_KEYS: ReadonlySet<string> = new Set([
  'certificate_path',
  'private_key_path',
  'private_key_passphrase',
  'algorithm',
  'default_identity',
  'identities',
  'tsa_url',
] satisfies (keyof Config['signing'])[]);

/**
 * Returns the configuration in force with what a reload takes over of another one: identities, tokens, callers and trust. Names
 * the other keys that differ: they need a restart. Throws `CONFIG_INVALID` where tokens, callers or identities are gone altogether.
 */
function takeOver(current: Config, next: Config): { readonly config: Config; readonly needsRestart: string[] } {
  requireKept(current, next);
  const { rubrics_dir: rubricsDir } = current.trust;
  const { rubrics_dir: _, ...lists } = next.trust;
  const isOfIdentity = ([key]: [string, unknown]) => IDENTITY_KEYS.has(key);
  const kept = Object.entries(current.signing).filter((entry) => !isOfIdentity(entry));
  const taken = Object.entries(next.signing).filter(isOfIdentity);
  const config = {
    ...current,
    auth: next.auth,
    signing: Object.fromEntries([...kept, ...taken]) as Config['signing'],
    trust: { ...lists, ...(rubricsDir !== undefined && { rubrics_dir: rubricsDir }) },
  };
  return { config, needsRestart: differingKeys(config, next) };
}

/** Part of a file is a valid file, too: without tokens, everybody would be an admin. */
function requireKept(current: Config, next: Config): void {
  const isSet = {
    'auth.tokens': ({ auth }: Config) => auth.tokens.length > 0,
    'auth.callers': ({ auth }: Config) => Object.keys(auth.callers).length > 0,
    'signing.identities': ({ signing }: Config) =>
      signing.certificate_path !== undefined || Object.keys(signing.identities).length > 0,
  };
  const lost = Object.entries(isSet).filter(([, test]) => test(current) && !test(next));
  const problem = 'is not set any more, as in a file that is half written. Set it, or restart the service without it';
  if (lost.length > 0) throw new AppError('CONFIG_INVALID', { problems: lost.map(([key]) => `${key}: ${problem}`) });
}

/** Returns the dotted paths of the keys whose values differ, as deep as both are tables. */
function differingKeys(one: object, other: object, prefix = ''): string[] {
  const values = (table: object, key: string) => (table as Record<string, unknown>)[key];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((key) => {
    const [here, there] = [values(one, key), values(other, key)];
    if (isTable(here) && isTable(there)) return differingKeys(here, there, `${prefix}${key}.`);
    return JSON.stringify(here) === JSON.stringify(there) ? [] : [`${prefix}${key}`];
  });
}

function isTable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
