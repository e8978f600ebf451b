import type { Socket } from 'node:net';
import { Semaphore } from '#concurrency/semaphore.ts';
import type { Config } from '#config/config.ts';
import {
  type CredentialSettings,
  type IdentitySettings,
  identitiesOf,
  identityPaths,
  signerStateDir,
} from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import { valueAt } from '#errors/assert.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import {
  checkCredential,
  hasEnded,
  logCredential,
  type UsedCredential,
  warnOfOutputs,
  watchExpiry,
} from './check-identity.ts';
import type { CheckedCredentials } from './checked-credentials.ts';
import { Credential, idOf, inTurns, isDevice, partsOf, processCountOf, requireOwnKeys, useOf } from './credential.ts';
import { forgetRefusedPins } from './identity/signers/pin-attempts.ts';
import { requireResponder } from './revocation/responder-of.ts';
import { StapleStore } from './revocation/staple-store.ts';
import { SignerSupervisor, type SigningProcess } from './signer-supervisor.ts';
import {
  type CredentialDescription,
  credentialsOf,
  type IdentityDescription,
  issuedOf,
  signerProcessesOf,
} from './signing-identity.ts';
import type { TrustSource } from './trust-lists.ts';

export interface SignersOptions {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly log: Log;
  /** Says whether identities are on a trust list. */
  readonly trust: TrustSource;
  /** Credentials that the official readers need not judge again; without it they judge each. */
  readonly checked?: CheckedCredentials;
  /** Time between two looks at the files of identities, in milliseconds. */
  readonly pollIntervalMs?: number;
}

/** The right of one process to signatures. */
export interface SignerAccess {
  /**
   * Lets the process use the keys of an identity, by its name, and no others; null for none. Returns false where the identity was
   * not in force when the process was attached.
   */
  allow(identity: string | null): boolean;
}

/** The number of the signer process that holds all PEM keys. */
const PEM_PROCESS = 0;

/** A credential as a start or a reload found it. */
interface Found {
  readonly credential: Credential;
  /** The state of its files before it was loaded. */
  readonly state: string;
  readonly candidate: CredentialDescription | null;
  /** The reason why there is no candidate. */
  readonly away: AppError | null;
}

/**
 * The signing identities of the configuration, and the processes that hold their keys: one for all PEM keys, and one for each other
 * credential, so that a device that hangs, or a library that crashes, delays nobody else. Identities are renewed when their files are
 * replaced. One whose device is away comes into force when it answers.
 */
export class Signers {
  readonly #options: SignersOptions;
  readonly #processes = new Map<number, SignerSupervisor>();
  /** By `idOf` their settings: identities may share one. */
  #credentials: ReadonlyMap<string, Credential> = new Map();
  #settings: readonly IdentitySettings[];
  #identities: readonly IdentityDescription[] = [];
  #processCount = PEM_PROCESS + 1;
  /** The OCSP responses of the certificates in force; null where none are stapled. */
  readonly staples: StapleStore | null;
  readonly #reloads = new Semaphore(1);
  readonly #renewed: (() => void)[] = [];
  #stopWatchingExpiry = (): void => undefined;
  /**
   * Resolves when the identities are in force: both official readers have judged what each key of claims signs. Rejects with an
   * AppError that names the file or device, its problem, and the remedy. Identities whose devices are away do not stop the start.
   */
  readonly started: Promise<void>;

  /** Starts the processes that hold the keys. */
  constructor(options: SignersOptions) {
    const { config } = options;
    this.#options = options;
    this.#settings = identitiesOf(config);
    this.staples = config.signing.ocsp === 'off' ? null : new StapleStore(options);
    this.started = this.#start();
    this.started.catch(() => undefined);
  }

  /** Starts signers, and waits until their identities are in force. Throws as `started` does. */
  static async start(options: SignersOptions): Promise<Signers> {
    const signers = new Signers(options);
    await signers.started;
    return signers;
  }

  /** Those in force on this node, in the order of the configuration, without those that are away. The same list until one changes. */
  get identities(): readonly IdentityDescription[] {
    return this.#identities;
  }

  /** Configured identities that cannot be used now, by name, and why. */
  get away(): ReadonlyMap<string, AppError> {
    const away = new Map<string, AppError>();
    for (const settings of this.#settings) {
      for (const part of partsOf(settings)) {
        const error = this.#credentials.get(idOf(part))?.away ?? null;
        if (error !== null) away.set(settings.name, error);
      }
    }
    return away;
  }

  get launcher(): Launcher {
    return this.#options.launcher;
  }

  /** The number of signer processes that a process may need a channel to. */
  get processCount(): number {
    return processCountOf(this.#settings);
  }

  /** Returns an identity in force, by its name; null where it is away, or there is none. */
  identityOf(name: string): IdentityDescription | null {
    return this.#identities.find((identity) => identity.name === name) ?? null;
  }

  /** Returns the process identifier of a signer process, by its number. */
  pidOf(number: number): number | undefined {
    return this.#processes.get(number)?.pid;
  }

  /** Calls the listener each time that other identities have come into force. */
  onRenewal(listener: () => void): void {
    this.#renewed.push(listener);
  }

  /**
   * Connects a process through this end of its channels, one to each of `signerProcessesOf` its identities, in that order; null
   * where it could not be started. It may sign with nothing yet.
   */
  attach(
    process: SigningProcess,
    channelOf: (index: number) => Socket | null,
    identities = this.#identities,
  ): SignerAccess {
    const keysAt = (number: number, allowed: readonly IdentityDescription[]) =>
      allowed.flatMap(credentialsOf).flatMap((each) => (each.process === number ? [each.key] : []));
    const accesses = signerProcessesOf(identities).map((number, index) => {
      const signer = valueAt(this.#processes, number);
      return { number, access: signer.attach(process, channelOf(index), keysAt(number, identities)) };
    });
    return {
      allow: (name) => {
        const allowed = identities.filter((each) => each.name === name);
        for (const { number, access } of accesses) access.allow(allowed.length === 0 ? null : keysAt(number, allowed));
        return name === null || allowed.length > 0;
      },
    };
  }

  /**
   * Puts the identities of another configuration into force: credentials that are the same keep their process and key, and those that
   * are gone are dropped when the last process that may use them has exited. Throws an AppError where one cannot be used, and leaves
   * everything as it was. PINs that were wrong are tried again.
   */
  async reload(config: Config): Promise<void> {
    await this.#reloads.run(async () => {
      await forgetRefusedPins(signerStateDir(this.#options.config));
      this.launcher.hide(identityPaths(config));
      await this.#apply(config, false);
    });
  }

  close(): void {
    this.#stopWatchingExpiry();
    this.staples?.close();
    for (const credential of this.#credentials.values()) credential.close();
    for (const signer of this.#processes.values()) signer.close();
  }

  async #start(): Promise<void> {
    const { config, trust, log } = this.#options;
    try {
      await this.#apply(config, true);
      await this.staples?.follow(this.#identities.map(issuedOf));
      for (const identity of this.#identities) warnOfOutputs(identity, trust, log);
      this.#stopWatchingExpiry = watchExpiry(() => this.#inForce(), log);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async #apply(config: Config, isStart: boolean): Promise<void> {
    const settings = identitiesOf(config);
    const wanted = this.#credentialsFor(settings);
    const credentials = [...wanted.values()];
    await inTurns(credentials, async () => {
      const results = await Promise.allSettled(credentials.map((each) => this.#find(each, settings, isStart)));
      const found = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      try {
        for (const result of results) if (result.status === 'rejected') throw result.reason;
        requireOwnKeys(
          settings,
          new Map(found.map(({ credential, candidate }) => [idOf(credential.settings), candidate])),
        );
      } catch (error) {
        for (const { credential, candidate } of found) if (candidate !== null) credential.refuse(candidate);
        for (const [id, credential] of wanted) if (!this.#credentials.has(id)) this.#discard(credential);
        throw error;
      }
      this.#commit(settings, wanted, found);
      if (!isStart) this.#tellOfRenewal();
    });
  }

  /** Returns the credentials of identities, by `idOf` their settings; those that are not known yet with new signer processes. */
  #credentialsFor(settings: readonly IdentitySettings[]): ReadonlyMap<string, Credential> {
    const parts = new Map(settings.flatMap(partsOf).map((part) => [idOf(part), part]));
    const renewal = {
      renew: (credential: Credential) => this.#renew(credential),
      refused: (credential: Credential, error: Error) => this.#tellOfRefusal(credential, error),
      pollIntervalMs: this.#options.pollIntervalMs,
    };
    return new Map(
      Array.from(parts, ([id, part]) => {
        return [id, this.#credentials.get(id) ?? new Credential(part, this.#processFor(part), renewal)];
      }),
    );
  }

  #processFor(settings: CredentialSettings): SignerSupervisor {
    const number = isDevice(settings) ? this.#processCount++ : PEM_PROCESS;
    const known = this.#processes.get(number);
    if (known !== undefined) return known;
    const { config, launcher, log } = this.#options;
    const stateDir = signerStateDir(config);
    const signer = new SignerSupervisor({ number, keyKind: settings.signer.type, stateDir, launcher, log });
    this.#processes.set(number, signer);
    return signer;
  }

  /** Loads a credential that is new or away, or whose files were changed. Throws an AppError where it cannot be used. */
  async #find(credential: Credential, settings: readonly IdentitySettings[], isStart: boolean): Promise<Found> {
    const state = await credential.stateOfFiles();
    if (!credential.isStale(state)) return { credential, state, candidate: credential.current, away: null };
    try {
      return { credential, state, candidate: await this.#load(credential, settings, isStart), away: null };
    } catch (error) {
      const mayBeAway = credential.away !== null || (isStart && isDevice(credential.settings));
      if (!mayBeAway || !(error instanceof AppError) || error.class !== 'outage') throw error;
      return { credential, state, candidate: null, away: error };
    }
  }

  /** Loads a credential as its files are now, and checks it unless it is the one in force. Throws an AppError. */
  async #load(
    credential: Credential,
    settings: readonly IdentitySettings[],
    mayHaveEnded: boolean,
  ): Promise<CredentialDescription> {
    const candidate = await credential.load();
    if (candidate.key === credential.current?.key) return candidate;
    try {
      // Operations that sign nothing go on with an identity that has ended, and the files are watched.
      if (mayHaveEnded && hasEnded(candidate)) return candidate;
      if (useOf(credential, settings).role === 'claim') {
        requireResponder(candidate, this.#options);
        await checkCredential(credential.signer, candidate, this.#options);
      } else if (hasEnded(candidate)) {
        throw new AppError('IDENTITY_EXPIRED', { notAfter: candidate.notAfter });
      }
      return candidate;
    } catch (error) {
      credential.refuse(candidate);
      throw error;
    }
  }

  #commit(
    settings: readonly IdentitySettings[],
    wanted: ReadonlyMap<string, Credential>,
    found: readonly Found[],
  ): void {
    const old = this.#credentials;
    this.#settings = settings;
    this.#credentials = wanted;
    for (const { credential, state, candidate, away } of found) {
      if (away !== null) this.#putAway(credential, away);
      if (candidate !== null && candidate !== credential.current) this.#accept(credential, candidate);
      credential.watchFrom(state);
    }
    for (const [id, credential] of old) if (!wanted.has(id)) this.#discard(credential);
    this.#change();
  }

  /** Puts a credential into force as its files are now. Returns false where its key cannot sign now, and the old one stays. */
  #renew(credential: Credential): Promise<boolean> {
    return credential.turn.run(async () => {
      if (credential.isClosed) return true;
      try {
        const candidate = await this.#load(credential, this.#settings, false);
        if (candidate.key === credential.current?.key) return true;
        this.#requireOwnKey(credential, candidate);
        this.#accept(credential, candidate);
      } catch (error) {
        const isUnanswered = error instanceof AppError && error.reason === 'SIGNATURE_FAILED';
        if (isUnanswered && credential.current !== null) return false;
        throw error;
      }
      this.#change();
      this.#tellOfRenewal();
      return true;
    });
  }

  #requireOwnKey(credential: Credential, candidate: CredentialDescription): void {
    const current = Array.from(
      this.#credentials,
      ([id, each]) => [id, each === credential ? candidate : each.current] as const,
    );
    try {
      requireOwnKeys(this.#settings, new Map(current));
    } catch (error) {
      credential.refuse(candidate);
      throw error;
    }
  }

  #accept(credential: Credential, candidate: CredentialDescription): void {
    credential.accept(candidate);
    logCredential(candidate, useOf(credential, this.#settings), this.#options.trust, this.#options.log);
  }

  #putAway(credential: Credential, away: AppError): void {
    credential.putAway(away);
    const { identity, role } = useOf(credential, this.#settings);
    const fields = { identity, role, dependency: `signer:${identity}`, reason: away.reason, problem: away.message };
    this.#options.log.error(fields, 'the signing identity cannot be used now');
  }

  #tellOfRefusal(credential: Credential, { message: problem }: Error): void {
    const { current } = credential;
    // One that is away is told of already.
    if (current === null) return;
    const fields = { ...useOf(credential, this.#settings), problem, not_after: current.notAfter };
    const message = 'the changed files of the signing identity cannot be used; the old one stays in force';
    this.#options.log.warn(fields, message);
  }

  /** Takes a credential out of force. The process of a device ends when no process is left that may use its key. */
  #discard(credential: Credential): void {
    credential.close();
    if (isDevice(credential.settings)) credential.signer.retire();
  }

  #change(): void {
    this.#identities = this.#settings.flatMap(({ name, tsaUrls, publisher, ...claim }) => {
      const own = this.#credentialOf(claim).current;
      const published = publisher && this.#credentialOf(publisher).current;
      if (own === null || (publisher !== null && published === null)) return [];
      return [{ ...own, name, tsaUrls, publisher: published }];
    });
  }

  #tellOfRenewal(): void {
    void this.staples?.follow(this.#identities.map(issuedOf));
    for (const listener of this.#renewed) listener();
  }

  #credentialOf(settings: CredentialSettings): Credential {
    return valueAt(this.#credentials, idOf(settings));
  }

  /** Returns the credentials in force with what uses them. */
  #inForce(): readonly UsedCredential[] {
    return [...this.#credentials.values()].flatMap((credential) => {
      const { current } = credential;
      return current === null ? [] : [{ credential: current, use: useOf(credential, this.#settings) }];
    });
  }
}
