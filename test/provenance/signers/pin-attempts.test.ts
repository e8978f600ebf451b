import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { type DeviceSigner, openSigner } from '#provenance/identity/signers/open-signer.ts';
import { forgetRefusedPins, tryPin } from '#provenance/identity/signers/pin-attempts.ts';
import { testIdentity } from '../../support/manifests/test-identity.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { buildShim, makeToken, PIN, TOKEN } from './softhsm.ts';

const WRONG_PIN = '4321-mistaken';
const FINAL_TRY = '0x20000';
const LOCKED = '0x40000';

const { privateKey, signer } = await testIdentity();
const token = makeToken({ key: privateKey });
const module = buildShim(token.folder);

afterEach(() => delete process.env['SHIM_FLAGS']);

/** A file with a PIN, and a folder for records. */
class Desk {
  readonly stateDir = temporaryFolder();
  readonly pinPath = join(temporaryFolder(), 'pin');
  #changes = 0;

  constructor(pin: string) {
    this.write(pin);
  }

  write(pin: string): void {
    writeFileSync(this.pinPath, `${pin}\n`);
    this.#changes += 1;
    utimesSync(this.pinPath, this.#changes, this.#changes);
  }

  open(): Promise<DeviceSigner> {
    const context = {
      algorithm: 'es256',
      publicKey: createPublicKey(privateKey),
      certificateChain: signer.certificateChain,
      stateDir: this.stateDir,
    } as const;
    return openSigner(token.settings('key', { module, pin_path: this.pinPath }), context);
  }

  /** Opens a signer and closes it, which logs out. */
  async use(): Promise<void> {
    await (await this.open()).close();
  }
}

function refusal(reason: string) {
  return (error: unknown) =>
    error instanceof AppError &&
    error.reason === reason &&
    error.isTransient &&
    !JSON.stringify(error.details).includes(WRONG_PIN);
}

function loginCount(): number {
  const file = join(token.folder, 'logins');
  return existsSync(file) ? statSync(file).size : 0;
}

/** Returns the number of logins that a task makes. */
async function loginsOf(task: () => Promise<unknown>): Promise<number> {
  const before = loginCount();
  await task();
  return loginCount() - before;
}

describe('a wrong PIN', () => {
  test('is tried once, also by the signers that are started later', async () => {
    const desk = new Desk(WRONG_PIN);
    const logins = await loginsOf(async () => {
      for (let start = 0; start < 3; start += 1) await assert.rejects(desk.use(), refusal('SIGNER_PIN_REFUSED'));
    });
    assert.equal(logins, 1);
  });

  test('is tried again when its file has changed', async () => {
    const desk = new Desk(WRONG_PIN);
    await assert.rejects(desk.use(), refusal('SIGNER_PIN_REFUSED'));
    desk.write(PIN);
    await desk.use();
    assert.deepEqual(readdirSync(desk.stateDir), []);
  });

  test('is tried again after a reload', async () => {
    const desk = new Desk(WRONG_PIN);
    await assert.rejects(desk.use(), refusal('SIGNER_PIN_REFUSED'));
    await forgetRefusedPins(desk.stateDir);
    assert.equal(await loginsOf(() => assert.rejects(desk.use(), refusal('SIGNER_PIN_REFUSED'))), 1);
  });

  test('is not tried again after a reload while another process is about to try it', async () => {
    const desk = new Desk(WRONG_PIN);
    await assert.rejects(desk.use(), refusal('SIGNER_PIN_REFUSED'));
    const [record = ''] = readdirSync(desk.stateDir);
    writeFileSync(join(desk.stateDir, record), '');
    await forgetRefusedPins(desk.stateDir);
    assert.deepEqual(readdirSync(desk.stateDir), [record]);
  });

  test('is recorded without the PIN', async () => {
    const desk = new Desk(WRONG_PIN);
    await assert.rejects(desk.use(), refusal('SIGNER_PIN_REFUSED'));
    const [record, ...others] = readdirSync(desk.stateDir);
    assert.deepEqual(others, []);
    assert.equal(readFileSync(join(desk.stateDir, `${record}`), 'utf8'), 'refused\n');
  });

  test('is tried once by signers that start at the same time', async () => {
    const desk = new Desk(WRONG_PIN);
    const logins = await loginsOf(async () => {
      const results = await Promise.allSettled(Array.from({ length: 4 }, () => desk.use()));
      for (const result of results)
        assert(result.status === 'rejected' && refusal('SIGNER_PIN_REFUSED')(result.reason));
    });
    assert.equal(logins, 1);
  });

  test('counts as refused where the attempt was broken off', async () => {
    const { pinPath: file, stateDir } = new Desk(PIN);
    const source = { file, token: TOKEN, stateDir };
    await assert.rejects(
      tryPin(source, () => {
        // A process that is killed leaves the record.
        const record = join(stateDir, `${readdirSync(stateDir)[0]}`);
        writeFileSync(`${record}.kept`, '');
        throw new Error('killed');
      }),
    );
    const [kept] = readdirSync(stateDir);
    const record = join(stateDir, `${kept}`.replace('.kept', ''));
    writeFileSync(record, '');
    utimesSync(record, 1, 1);
    await assert.rejects(
      tryPin(source, () => 'accepted'),
      refusal('SIGNER_PIN_REFUSED'),
    );
  });
});

describe('a PIN', () => {
  for (const [state, flags] of [
    ['is locked', LOCKED],
    ['shows its final try', FINAL_TRY],
  ] as const) {
    test(`is not tried while the token ${state}`, async () => {
      const desk = new Desk(PIN);
      process.env['SHIM_FLAGS'] = flags;
      assert.equal(await loginsOf(() => assert.rejects(desk.use(), refusal('SIGNER_PIN_LOCKED'))), 0);
      delete process.env['SHIM_FLAGS'];
      await desk.use();
    });
  }

  test('that cannot be read stops the start', async () => {
    const desk = new Desk(PIN);
    await rm(desk.pinPath);
    await assert.rejects(
      desk.use(),
      (error) => error instanceof AppError && error.reason === 'SIGNER_CREDENTIAL_UNREADABLE' && !error.isTransient,
    );
  });
});
