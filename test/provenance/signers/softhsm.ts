import { execFileSync } from 'node:child_process';
import type { KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SettingsOf } from '#provenance/identity/signers/device-key.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

export const SOFTHSM = '/usr/lib/softhsm/libsofthsm2.so';
export const TOKEN = 'attestream';
export const PIN = '1234-correct';

/** A token of SoftHSM that a test has made. */
export interface TestToken {
  readonly folder: string;
  /** The file with the right PIN. */
  readonly pinPath: string;
  /** A new folder for records of refused PINs. */
  newStateDir(): string;
  /** Has the token vanish, as a device does that is unplugged. */
  takeAway(): void;
  bringBack(): void;
  settings(key: string, changed?: Partial<SettingsOf<'pkcs11'>>): SettingsOf<'pkcs11'>;
}

/**
 * Makes a token in a folder of its own that holds keys under their labels. This process and its children see it alone; it has to be
 * made before the first of them loads the module.
 */
export function makeToken(keys: Readonly<Record<string, KeyObject>>): TestToken {
  const folder = temporaryFolder();
  const [tokens, elsewhere] = [join(folder, 'tokens'), join(folder, 'elsewhere')];
  mkdirSync(tokens);
  const configuration = join(folder, 'softhsm2.conf');
  writeFileSync(configuration, `directories.tokendir = ${tokens}\nobjectstore.backend = file\nlog.level = ERROR\n`);
  process.env['SOFTHSM2_CONF'] = configuration;
  run(['--init-token', '--free', '--label', TOKEN, '--pin', PIN, '--so-pin', '12345678']);
  for (const [index, [label, key]] of Object.entries(keys).entries()) {
    const file = join(folder, 'key.pem');
    writeFileSync(file, key.export({ type: 'pkcs8', format: 'pem' }));
    run(['--import', file, '--token', TOKEN, '--label', label, '--id', `0${index + 1}`, '--pin', PIN]);
  }
  const pinPath = join(folder, 'pin');
  writeFileSync(pinPath, `${PIN}\n`);
  return {
    folder,
    pinPath,
    newStateDir: temporaryFolder,
    takeAway: () => renameSync(tokens, elsewhere),
    bringBack: () => existsSync(elsewhere) && renameSync(elsewhere, tokens),
    settings: (key, changed = {}) => ({
      type: 'pkcs11',
      module: SOFTHSM,
      token: TOKEN,
      key,
      pin_path: pinPath,
      ...changed,
    }),
  };
}

function run(parameters: readonly string[]): void {
  execFileSync('softhsm2-util', parameters, { stdio: 'pipe' });
}

/** Builds the module that misbehaves, and returns its path. `SHIM_LOGINS` in the environment is a file with a byte for each login. */
export function buildShim(folder: string): string {
  const module = join(folder, 'shim.so');
  const [source, headers] = ['./module-shim.c', '../../../node_modules/pkcs11js/includes/pkcs11'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  execFileSync('gcc', ['-shared', '-fPIC', `-I${headers}`, '-o', module, `${source}`, '-ldl'], { stdio: 'pipe' });
  process.env['SHIM_LOGINS'] = join(folder, 'logins');
  return module;
}
