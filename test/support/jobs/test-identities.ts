import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { AppError } from '#errors/app-error.ts';
import type { NodeIdentities } from '#jobs/identities.ts';
import type { Signers } from '#provenance/signers.ts';
import { describedIdentity } from './inert-signer.ts';

const YEAR_MS = 365 * 24 * 3_600_000;

const section = {
  certificate_path: '/etc/attestream/identity.pem',
  signer: { type: 'pem', private_key_path: '/etc/attestream/identity.key' },
};

/** Returns the configuration with identities of these names, the first of which is the default. */
export function withIdentities(config: Config, ...names: string[]): Config {
  const identities = Object.fromEntries(names.map((name) => [name, section]));
  const { signing } = configSchema.parse({ signing: { default_identity: names[0], identities } });
  return { ...config, signing } as Config;
}

/** The identities of a node, which a test changes. */
export class TestIdentities implements NodeIdentities {
  identities: NodeIdentities['identities'];
  readonly away = new Map<string, AppError>();
  readonly started = Promise.resolve();
  readonly processCount = 1;

  constructor(...names: string[]) {
    this.identities = names.map(described);
  }

  /** A signer without a process that has them. */
  get signer(): Signers {
    return this as unknown as Signers;
  }

  attach() {
    return { allow: () => true };
  }

  onRenewal(): void {
    // A test says when they have changed.
  }

  identityOf(name: string) {
    return this.identities.find((identity) => identity.name === name) ?? null;
  }

  add(name: string): void {
    this.away.delete(name);
    this.identities = [...this.identities, described(name)];
  }

  /** Removes an identity, which is away then where a problem is given. */
  remove(name: string, problem?: string): void {
    this.identities = this.identities.filter((identity) => identity.name !== name);
    if (problem !== undefined) this.away.set(name, new AppError('SIGNATURE_FAILED', { problem }));
  }
}

function described(name: string) {
  return { ...describedIdentity(new Date(Date.now() + YEAR_MS), name), name };
}
