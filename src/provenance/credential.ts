import { X509Certificate } from 'node:crypto';
import { backoffMs } from '#concurrency/retry.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import { type CredentialSettings, filesOf, type IdentitySettings } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import type { CredentialUse } from './check-identity.ts';
import { FileWatch, stateOfFile } from './file-watch.ts';
import type { SignerSupervisor } from './signer-supervisor.ts';
import type { CredentialDescription } from './signing-identity.ts';

/** Pauses before a credential that is away, or that a restarted signer could not load, is tried again. */
const AWAY_BACKOFF = { firstMs: 1_000, maxMs: 60_000 };

/** The looks at renewed files that cannot be used before they are warned of: a minute of them. */
const MAX_RENEWAL_ATTEMPTS = 30;

/** The renewal of credentials, which is the same for all. */
export interface CredentialRenewal {
  /** Puts the credential as its files are now into force. Returns false where that is to be tried again; throws where they cannot be used. */
  readonly renew: (credential: Credential) => Promise<boolean>;
  /** Called once for each change of files that cannot be used. */
  readonly refused: (credential: Credential, error: Error) => void;
  /** Time between two looks at the files, in milliseconds. */
  readonly pollIntervalMs?: number | undefined;
}

/** A key of the configuration with its certificates, in the signer process that holds the key. */
export class Credential {
  readonly settings: CredentialSettings;
  readonly signer: SignerSupervisor;
  /** Whoever loads the credential takes a turn. */
  readonly turn = new Semaphore(1);
  readonly #renewal: CredentialRenewal;
  #current: CredentialDescription | null = null;
  #away: AppError | null = null;
  #isClosed = false;
  #watch: FileWatch | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(settings: CredentialSettings, signer: SignerSupervisor, renewal: CredentialRenewal) {
    this.settings = settings;
    this.signer = signer;
    this.#renewal = renewal;
  }

  /** The credential in force; null while it is away. */
  get current(): CredentialDescription | null {
    return this.#current;
  }

  /** The reason why it cannot be used; null while it is in force. */
  get away(): AppError | null {
    return this.#away;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Loads it as its files are now. Its key is held until it is accepted or refused. Throws an AppError. */
  load(): Promise<CredentialDescription> {
    return this.signer.load(this.settings, this.#current, () => this.#retryLater(1));
  }

  /** Tells whether it is to be loaded, for a state of its files: it is away, or they were changed. */
  isStale(state: string): boolean {
    return this.#current === null || state !== this.#watch?.usedState;
  }

  /** Returns a text that differs when one of its files was changed, replaced, added or removed. */
  async stateOfFiles(): Promise<string> {
    return (await Promise.all(filesOf(this.settings).map(stateOfFile))).join();
  }

  /** Puts a candidate into force. Processes that were attached before go on with the old one. */
  accept(candidate: CredentialDescription): void {
    const old = this.#current;
    this.#current = candidate;
    this.#away = null;
    if (old !== null && old.key !== candidate.key) this.signer.release(old.key);
  }

  /** Lets go of a candidate. */
  refuse({ key }: CredentialDescription): void {
    if (key !== this.#current?.key) this.signer.release(key);
  }

  /** Records why it cannot be used now, and tries it again after growing pauses. */
  putAway(error: AppError): void {
    this.#away = error;
    this.#retryLater(1);
  }

  /** Looks for changes of its files from the state in which they were loaded, in place of a watch before. */
  watchFrom(usedState: string): void {
    this.#watch?.close();
    this.#watch = new FileWatch({
      stateOf: () => this.stateOfFiles(),
      usedState,
      reload: () => this.#renewal.renew(this),
      refused: (error) => this.#renewal.refused(this, error),
      maxAttempts: MAX_RENEWAL_ATTEMPTS,
      pollIntervalMs: this.#renewal.pollIntervalMs,
    });
  }

  /** Takes it out of force. */
  close(): void {
    this.#isClosed = true;
    this.#watch?.close();
    clearTimeout(this.#retry);
    if (this.#current !== null) this.signer.release(this.#current.key);
  }

  #retryLater(failures: number): void {
    clearTimeout(this.#retry);
    if (this.#isClosed) return;
    this.#retry = setTimeout(() => void this.#tryAgain(failures), backoffMs(failures, AWAY_BACKOFF)).unref();
  }

  async #tryAgain(failures: number): Promise<void> {
    let isLoaded = false;
    try {
      isLoaded = await this.#renewal.renew(this);
    } catch (error) {
      if (error instanceof AppError && this.#current === null) this.#away = error;
    }
    if (!isLoaded) this.#retryLater(failures + 1);
  }
}

// The identities of a configuration have a credential for claims, and one of their publisher; they may share them.

/** Returns the settings of the credentials of an identity: that of claims, and that of its publisher. */
export function partsOf({ publisher, ...claim }: IdentitySettings): readonly CredentialSettings[] {
  return publisher === null ? [claim] : [claim, publisher];
}

/** Returns a text that is the same for equal settings. */
export function idOf({ certificatePath, algorithm, signer }: CredentialSettings): string {
  return JSON.stringify([certificatePath, algorithm, signer]);
}

/** Tells whether a key has a signer process of its own. */
export function isDevice({ signer: { type } }: CredentialSettings): boolean {
  return type !== 'pem' && type !== 'development';
}

/** Returns the number of signer processes that hold the keys of identities: one for all in files, and one for each device. */
export function processCountOf(settings: readonly IdentitySettings[]): number {
  const parts = settings.flatMap(partsOf);
  return new Set(parts.map((part) => (isDevice(part) ? idOf(part) : ''))).size;
}

/** Returns what identities use a credential for. */
export function useOf({ settings: own }: Credential, settings: readonly IdentitySettings[]): CredentialUse {
  const id = idOf(own);
  const claims = settings.filter((identity) => idOf(identity) === id);
  const users =
    claims.length > 0 ? claims : settings.filter(({ publisher }) => publisher !== null && idOf(publisher) === id);
  return { identity: users.map(({ name }) => name).join(', '), role: claims.length > 0 ? 'claim' : 'publisher' };
}

/** Throws `IDENTITY_INVALID` where a publisher has the key that claims of an identity are signed with. */
export function requireOwnKeys(
  settings: readonly IdentitySettings[],
  credentials: ReadonlyMap<string, CredentialDescription | null>,
): void {
  const keyOf = (part: CredentialSettings): string | null => {
    const [leaf] = credentials.get(idOf(part))?.certificateChain ?? [];
    if (leaf === undefined) return null;
    const { publicKey } = new X509Certificate(Buffer.from(leaf, 'base64'));
    return publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  };
  const claims = new Map(settings.map((identity) => [keyOf(identity), identity.name]));
  for (const { name, publisher } of settings) {
    const key = publisher && keyOf(publisher);
    const claim = key === null ? undefined : claims.get(key);
    if (publisher === null || claim === undefined) continue;
    const problem = `the publisher of the identity "${name}" has the key that claims of "${claim}" are signed with. Give it a key of its own`;
    throw new AppError('IDENTITY_INVALID', { file: publisher.certificatePath, problems: [problem] });
  }
}

/** Runs a task that changes several credentials. */
export async function inTurns(credentials: readonly Credential[], task: () => Promise<void>): Promise<void> {
  await Promise.all(credentials.map(({ turn }) => turn.acquire()));
  try {
    await task();
  } finally {
    for (const { turn } of credentials) turn.release();
  }
}
