import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { Launcher } from '#processes/launcher.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { Signers } from '#provenance/signers.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';
import {
  type TestIdentity,
  type TestIdentityWishes,
  testIdentity,
  writeIdentity,
} from '../support/manifests/test-identity.ts';

const WITH_DEVICES = new URL('./run-signer-with-devices.ts', import.meta.url);

/** Starts signer processes whose devices are files. */
class DeviceLauncher extends Launcher {
  override launch(entry: URL, options: Parameters<Launcher['launch']>[1]): ReturnType<Launcher['launch']> {
    return super.launch(entry.href.endsWith('/run-signer.ts') ? WITH_DEVICES : entry, options);
  }
}

/** A credential in files of its own, in a form that the configuration takes. */
export interface TestCredential {
  readonly settings: object;
  readonly identity: TestIdentity;
  readonly keyFile: string;
  /** Has the device do something else from now on; null: it signs. */
  readonly order: (order: 'away' | 'hangs' | 'crashes' | 'wrong' | null) => void;
  /** Replaces certificate and key. */
  readonly replace: (identity: TestIdentity) => void;
}

export async function credentialIn(
  folder: string,
  type: 'pem' | 'http',
  wishes: TestIdentityWishes | TestIdentity = {},
): Promise<TestCredential> {
  const own = mkdtempSync(join(folder, 'credential-'));
  const identity = 'chain' in wishes ? wishes : await fitIdentity(wishes);
  const { certificatePath, privateKeyPath } = writeIdentity(own, identity);
  chmodSync(privateKeyPath, 0o600);
  const state = join(own, 'state');
  const signer =
    type === 'pem' ? { type, private_key_path: privateKeyPath } : { type, key: privateKeyPath, socket_path: state };
  return {
    settings: { certificate_path: certificatePath, signer },
    identity,
    keyFile: privateKeyPath,
    order: (order) => (order === null ? rmSync(state, { force: true }) : writeFileSync(state, order)),
    replace: (next) => void writeIdentity(own, next),
  };
}

/** An identity that follows C2PA's profile, so that the log has nothing to warn of. */
export function fitIdentity(wishes: TestIdentityWishes = {}): Promise<TestIdentity> {
  const extendedKeyUsages = [EXTENDED_KEY_USAGE.c2paClaimSigning, EXTENDED_KEY_USAGE.emailProtection];
  return testIdentity({ leaf: { extendedKeyUsages, ocsp: 'http://ocsp.example.com' }, ...wishes });
}

/** Returns the configuration of identities. */
export function configWith(folder: string, identities: Readonly<Record<string, object>>): Config {
  const signing = { identities, default_identity: Object.keys(identities)[0] };
  return configSchema.parse({ jobs: { data_dir: folder, scratch_dir: folder }, signing }) as Config;
}

/** Starts signers, which look for changed files all the time. */
export async function startedSigners(t: TestContext, config: Config) {
  const log = keptLog();
  const trust = { current: NO_TRUST_LISTS };
  const signers = await Signers.start({ config, launcher: new DeviceLauncher(), log, trust, pollIntervalMs: 5 });
  t.after(() => signers.close());
  return { signers, log };
}
