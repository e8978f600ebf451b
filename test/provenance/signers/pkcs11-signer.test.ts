import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { afterEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pkcs11js from 'pkcs11js';
import { AppError } from '#errors/app-error.ts';
import { valueAt } from '#errors/assert.ts';
import type { SettingsOf } from '#provenance/identity/signers/device-key.ts';
import { type DeviceSigner, openSigner, withDeviceKey } from '#provenance/identity/signers/open-signer.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '#provenance/signer.ts';
import { assertValid } from '../../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../../support/manifests/sign-wav.ts';
import { type TestIdentity, testIdentity, testKey } from '../../support/manifests/test-identity.ts';
import { signerContract } from '../signer-contract.ts';
import { buildShim, makeToken, PIN, SOFTHSM } from './softhsm.ts';

const identities = new Map<SigningAlgorithm, TestIdentity>();
for (const algorithm of SIGNING_ALGORITHMS)
  identities.set(algorithm, await testIdentity({ algorithm, intermediate: true }));
const token = makeToken({
  ...Object.fromEntries([...identities].map(([algorithm, { privateKey }]) => [algorithm, privateKey])),
  stranger: testKey('es256'),
});
const shim = buildShim(token.folder);
const SHIM_SETTINGS = ['SHIM_DELAY_MS', 'SHIM_ERROR', 'SHIM_DAMAGE', 'SHIM_FLAGS', 'SHIM_MEETING'];

afterEach(() => {
  for (const name of SHIM_SETTINGS) delete process.env[name];
});

interface Wishes {
  readonly settings?: Partial<SettingsOf<'pkcs11'>>;
  readonly stateDir?: string;
  readonly timeoutMs?: number;
}

function open(
  algorithm: SigningAlgorithm,
  { settings = {}, stateDir = token.newStateDir(), ...rest }: Wishes = {},
): Promise<DeviceSigner> {
  const { privateKey, signer } = valueAt(identities, algorithm);
  const context = {
    algorithm,
    publicKey: createPublicKey(privateKey),
    certificateChain: signer.certificateChain,
    stateDir,
    ...rest,
  };
  return openSigner(token.settings(algorithm, settings), context);
}

const CKR_DEVICE_ERROR = '0x30';

/** Closes all sessions, as a device does that was restarted. */
function closeSessions(): void {
  const module = new pkcs11js.PKCS11(SOFTHSM);
  for (const slot of module.C_GetSlotList(true)) module.C_CloseAllSessions(slot);
}

function reasonOf(expected: string) {
  return (error: unknown) => error instanceof AppError && error.reason === expected && !error.message.includes(PIN);
}

for (const algorithm of SIGNING_ALGORITHMS) {
  describe(`a token with a key for ${algorithm}`, () => {
    signerContract(algorithm, () => open(algorithm));

    test('signs manifests that both official readers call valid', async () => {
      const { bytes, manifest, measuredBytes } = await signWav(testAuthor({ signer: await open(algorithm) }));
      await assertValid(bytes, 'audio/wav');
      assert.equal(manifest.length, measuredBytes);
    });

    test('shows the public key', async () => {
      const shown = await withDeviceKey(
        token.settings(algorithm),
        token.newStateDir(),
        async ({ publicKey }) => publicKey,
      );
      assert(shown.equals(createPublicKey(valueAt(identities, algorithm).privateKey)));
    });
  });
}

describe('a token', () => {
  test('lets signatures overlap', async () => {
    const signer = await open('es256', { settings: { module: shim } });
    process.env['SHIM_MEETING'] = '4';
    await Promise.all(Array.from({ length: 8 }, (_, index) => signer.sign(Buffer.from([index]))));
  });

  test('is opened again, and the PIN given again, where the device closed the sessions', async () => {
    const signer = await open('es256');
    closeSessions();
    await Promise.all([1, 2, 3].map((byte) => signer.sign(Buffer.from([byte]))));
  });

  test('that was away is used again, by a signer from before and by a new one', async () => {
    const signer = await open('es256');
    token.takeAway();
    await assert.rejects(signer.sign(Buffer.alloc(1)), reasonOf('SIGNER_AWAY'));
    await assert.rejects(open('es384'), reasonOf('SIGNER_AWAY'));
    token.bringBack();
    await signer.sign(Buffer.alloc(1));
    await (await open('es384')).sign(Buffer.alloc(1));
  });

  test('that is away when its module is loaded is an outage', () => {
    const program = fileURLToPath(new URL('returning-signer.ts', import.meta.url));
    const { stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
    assert.equal(stdout, 'SIGNER_AWAY\nsigned\n', stderr);
  });

  test('is away while its module reports errors', async () => {
    const signer = await open('es256', { settings: { module: shim } });
    process.env['SHIM_ERROR'] = CKR_DEVICE_ERROR;
    await assert.rejects(signer.sign(Buffer.alloc(1)), reasonOf('SIGNER_AWAY'));
    delete process.env['SHIM_ERROR'];
    await signer.sign(Buffer.alloc(1));
  });

  test('whose module hangs ends its process, which alone ends the module', () => {
    const program = fileURLToPath(new URL('hanging-signer.ts', import.meta.url));
    const settings = JSON.stringify(token.settings('es256', { module: shim }));
    const certificate = `${valueAt(identities, 'es256').signer.certificateChain[0]?.toString('base64')}`;
    const { signal, stdout } = spawnSync(process.execPath, [program, settings, certificate], { encoding: 'utf8' });
    assert.equal(signal, 'SIGKILL');
    assert.equal(stdout, 'SIGNER_AWAY\n');
  });

  test('gives no signature of another message', async () => {
    const signer = await open('es256', { settings: { module: shim } });
    process.env['SHIM_DAMAGE'] = '1';
    await assert.rejects(signer.sign(Buffer.alloc(1)), reasonOf('SIGNER_KEY_MISMATCH'));
  });

  test('that answers too late is away', async () => {
    const signer = await open('es256', { settings: { module: shim }, timeoutMs: 500 });
    process.env['SHIM_DELAY_MS'] = '700';
    await assert.rejects(signer.sign(Buffer.alloc(1)), reasonOf('SIGNER_AWAY'));
  });
});

describe('the start names what is wrong:', () => {
  for (const [problem, reason, settings] of [
    ['a module that is missing', 'SIGNER_MODULE_UNUSABLE', { module: '/nonexistent/module.so' }],
    ['a module that is none', 'SIGNER_MODULE_UNUSABLE', { module: token.pinPath }],
    ['a token that is missing', 'SIGNER_AWAY', { token: 'another' }],
    ['a key that is missing', 'SIGNER_KEY_MISSING', { key: 'another' }],
    ['the key of another certificate', 'SIGNER_KEY_MISMATCH', { key: 'stranger' }],
    ['a key of another kind', 'SIGNER_KEY_MISMATCH', { key: 'ps256' }],
  ] as const) {
    test(problem, () => assert.rejects(open('es256', { settings }), reasonOf(reason)));
  }

  test('a mechanism that is missing', async () => {
    process.env['SHIM_ERROR'] = '0x70';
    await assert.rejects(open('es256', { settings: { module: shim } }), reasonOf('SIGNER_ALGORITHM_UNSUPPORTED'));
  });
});
