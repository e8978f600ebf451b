import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import type { Socket } from 'node:net';
import { after, describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { DEFAULT_IDENTITY } from '#config/identities.ts';
import { itemAt } from '#errors/assert.ts';
import { Launcher } from '#processes/launcher.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { probeSigning } from '#provenance/probe-signing.ts';
import type { Signer } from '#provenance/signer.ts';
import { HEADER_BYTES, MAX_PENDING_REQUESTS } from '#provenance/signer-protocol.ts';
import { Signers, type SignersOptions } from '#provenance/signers.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { limitRepeats } from '#telemetry/repeat-limit.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';
import { isRunning } from '../support/processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { clientOf, configOf, connectedClient, socketPair } from './connected-client.ts';
import { signerContract } from './signer-contract.ts';

const DATA = Buffer.from('what is to be signed');

/** An interval of looks at files that no test lives to see. */
const NEVER_MS = 3_600_000;

async function startedSigner(t: TestContext, config: Config, options: Partial<SignersOptions> = {}): Promise<Signers> {
  const trust = { current: NO_TRUST_LISTS };
  const signers = await Signers.start({ config, launcher: new Launcher(), log: keptLog(), trust, ...options });
  t.after(() => signers.close());
  return signers;
}

const signatureSizeBytes = (signers: Signers): number => itemAt(signers.identities, 0).signatureSizeBytes;

/** A client that does not speak the protocol; `killed` settles when the signer has it killed. */
async function hostileClientOf(t: TestContext, signer: Signers): Promise<{ channel: Socket; killed: Promise<string> }> {
  const [channel, others] = await socketPair();
  channel.on('error', () => undefined);
  channel.resume();
  t.after(() => channel.destroy());
  const { promise: killed, resolve: kill } = Promise.withResolvers<string>();
  signer
    .attach({ exited: new Promise(() => undefined), giveChannel: () => undefined, kill }, () => others)
    .allow(DEFAULT_IDENTITY);
  return { channel, killed };
}

describe('a signer in a process of its own', () => {
  for (const algorithm of ['es256', 'es512', 'ps256', 'ed25519'] as const) {
    let opened: Promise<Signer> | undefined;
    // The channel is one of the suite, not of one test.
    const suite = { after: (end: () => void) => ends.push(end) } as unknown as TestContext;
    const ends: (() => void)[] = [];
    const open = async () =>
      clientOf(suite, await startedSigner(suite, await configOf(temporaryFolder(), { algorithm })));
    signerContract(`${algorithm}, by a channel`, () => {
      opened ??= open();
      return opened;
    });
    after(() => {
      for (const end of ends.reverse()) end();
    });
  }

  test('answers everything that it was asked before it was killed, and after', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder(), { algorithm: 'ps512' }));
    const clients = [await clientOf(t, signer), await clientOf(t, signer)];
    await clients[0]?.sign(DATA);
    for (let round = 0; round < 2; round += 1) {
      const asked = clients.flatMap((client) => Array.from({ length: 100 }, () => client.sign(DATA)));
      process.kill(signer.pidOf(0) ?? 0, 'SIGKILL');
      assert.equal((await Promise.all(asked)).length, 200);
    }
  });

  test('that dies again and again is one warning a minute', async (t) => {
    const log = keptLog();
    const signer = await startedSigner(t, await configOf(temporaryFolder()), { log: limitRepeats(log) });
    const client = await clientOf(t, signer);
    log.lines.length = 0;
    for (let round = 0; round < 3; round += 1) {
      await client.sign(DATA);
      process.kill(signer.pidOf(0) ?? 0, 'SIGKILL');
    }
    await client.sign(DATA);
    assert.deepEqual(
      log.lines.map(({ level, message }) => [level, message]),
      [['warn', 'the signer process exited and is restarted']],
    );
  });

  test('is replaced when it hangs, and answers what it was asked meanwhile', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    const signer = await startedSigner(t, await configOf(temporaryFolder()));
    const client = await clientOf(t, signer);
    await client.sign(DATA);
    const hanging = signer.pidOf(0) ?? 0;
    process.kill(hanging, 'SIGSTOP');
    const asked = Array.from({ length: 20 }, () => client.sign(DATA));
    // A ping after 10 s, which stays unanswered for 20; then the back-off of the restart.
    t.mock.timers.tick(30_000);
    while (signer.pidOf(0) === hanging) {
      t.mock.timers.tick(1);
      await setImmediate();
    }
    for (const signature of await Promise.all(asked)) assert.equal(signature.length, signatureSizeBytes(signer));
    assert(!isRunning(hanging));
  });

  test('is started again until the system gives a process for it', async (t) => {
    class ShortOfMemory extends Launcher {
      refusals = 0;
      override launch(...launched: Parameters<Launcher['launch']>): ReturnType<Launcher['launch']> {
        if (this.refusals === 0) return super.launch(...launched);
        this.refusals -= 1;
        throw new Error('spawn ENOMEM');
      }
    }
    const launcher = new ShortOfMemory();
    const signer = await startedSigner(t, await configOf(temporaryFolder()), { launcher });
    const client = await clientOf(t, signer);
    await client.sign(DATA);
    launcher.refusals = 2;
    process.kill(signer.pidOf(0) ?? 0, 'SIGKILL');
    assert.equal((await client.sign(DATA)).length, signatureSizeBytes(signer));
    assert.equal(launcher.refusals, 0);
  });

  test('does not sign for the old identity when it was killed after its files were replaced', async (t) => {
    const folder = temporaryFolder();
    const log = keptLog();
    const signer = await startedSigner(t, await configOf(folder), { log, pollIntervalMs: NEVER_MS });
    const { identities } = signer;
    const client = await clientOf(t, signer);
    await client.sign(DATA);
    await configOf(folder);
    process.kill(signer.pidOf(0) ?? 0, 'SIGKILL');
    await assert.rejects(client.sign(DATA), /its files were replaced/);
    assert.equal(signer.identities, identities, 'the new identity has not been checked');
  });

  test('continues after a client violates the protocol, and has it killed', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder()));
    const client = await clientOf(t, signer);
    const { channel, killed } = await hostileClientOf(t, signer);
    channel.write(Buffer.alloc(64, 0xff));
    await once(channel, 'close');
    await killed;
    assert.equal((await client.sign(DATA)).length, signatureSizeBytes(signer));
  });

  test('has a client killed that sends more requests than it may have pending, and serves others meanwhile', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder(), { algorithm: 'ps512' }));
    const client = await clientOf(t, signer);
    const { channel, killed } = await hostileClientOf(t, signer);
    const closed = new Promise((resolve) => channel.once('close', resolve));
    channel.write(Buffer.alloc(HEADER_BYTES * 50_000));
    for (let count = 0; count < 20; count += 1) await client.sign(DATA);
    await Promise.all([killed, closed]);
    const answerBytes = HEADER_BYTES + signatureSizeBytes(signer);
    assert(channel.bytesRead <= MAX_PENDING_REQUESTS * answerBytes, 'it is answered no more than it may have pending');
  });

  test('signs while an input may use the key, also what came before it was told so, and nothing before or after', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder()));
    const { client, access } = await connectedClient(t, signer);
    const signing = client.identityOf(DEFAULT_IDENTITY).signer;
    for (let round = 0; round < 2; round += 1) {
      await assert.rejects(async () => {
        for (;;) await signing.sign(DATA);
      }, /no input runs/);
      const early = signing.sign(DATA);
      access.allow(DEFAULT_IDENTITY);
      await early;
      await signing.sign(DATA);
      access.allow(null);
    }
  });

  test('knows again what each client may use when it was started again', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder()));
    const allowed = await clientOf(t, signer);
    const { client, access } = await connectedClient(t, signer);
    process.kill(signer.pidOf(0) ?? 0, 'SIGKILL');
    await allowed.sign(DATA);
    const signing = client.identityOf(DEFAULT_IDENTITY).signer;
    await assert.rejects(signing.sign(DATA), /no input runs/);
    access.allow(DEFAULT_IDENTITY);
    await signing.sign(DATA);
  });

  test('does not sign with another key than the one that the input may use, and ends who asks for it', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder()));
    const other = { ...itemAt(signer.identities, 0), name: 'other', key: 1 };
    const { promise: killed, resolve: kill } = Promise.withResolvers<string>();
    const { client, access } = await connectedClient(t, signer, { timeoutMs: 100, identities: [other], kill });
    assert(access.allow(DEFAULT_IDENTITY));
    await assert.rejects(client.identityOf('other').signer.sign(DATA), /did not answer within/);
    assert.match(await killed, /a key that its input may not use/);
    assert(!access.allow('other'), 'it is none that was in force');
  });

  test('signs hundreds of requests of one client that come at once', async (t) => {
    const signer = await startedSigner(t, await configOf(temporaryFolder()));
    const client = await clientOf(t, signer);
    const signatures = await Promise.all(Array.from({ length: 300 }, () => client.sign(DATA)));
    assert(signatures.every(({ length }) => length === signatureSizeBytes(signer)));
  });

  test('does not start with a key that it cannot use, and says why as the service did', async (t) => {
    const config = await configOf(temporaryFolder());
    const early = await configOf(temporaryFolder(), { leaf: { notBefore: new Date(Date.now() + 86_400_000) } });
    const missing = { ...config, signing: { ...config.signing, private_key_path: '/nowhere/key.pem' } };
    await assert.rejects(startedSigner(t, early), { reason: 'IDENTITY_INVALID' });
    await assert.rejects(startedSigner(t, missing), { reason: 'IDENTITY_FILE_UNREADABLE' });
  });

  test('tells of a key file that others may read or change', async (t) => {
    const config = await configOf(temporaryFolder());
    const file = config.signing.private_key_path ?? '';
    for (const { mode, exposed } of [
      { mode: 0o600, exposed: null },
      { mode: 0o640, exposed: null },
      { mode: 0o644, exposed: { file, mode: '0644' } },
      { mode: 0o660, exposed: { file, mode: '0660' } },
    ]) {
      chmodSync(file, mode);
      assert.deepEqual(itemAt((await startedSigner(t, config)).identities, 0).exposedKey, exposed);
    }
  });
});

describe('the check of a signing identity', () => {
  test('passes one that both official readers accept', async (t) => {
    for (const algorithm of ['es256', 'ps256', 'ed25519'] as const) {
      const signer = await startedSigner(t, await configOf(temporaryFolder(), { algorithm }));
      assert.equal(await probeSigning(signer, DEFAULT_IDENTITY), null);
    }
  });

  test('refuses one whose only extended key usage is that of C2PA, which the WASM reader calls invalid', async (t) => {
    const config = await configOf(temporaryFolder(), {
      leaf: { extendedKeyUsages: [EXTENDED_KEY_USAGE.c2paClaimSigning] },
    });
    await assert.rejects(startedSigner(t, config), { reason: 'IDENTITY_INVALID' });
  });
});
