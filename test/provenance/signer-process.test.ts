import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { Launcher } from '#processes/launcher.ts';
import { checkIdentity } from '#provenance/authoring/check-identity.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate.ts';
import { RemoteSigner } from '#provenance/identity/remote-signer.ts';
import { SignerProcess } from '#provenance/identity/signer-process.ts';
import { keptLog } from '../jobs/test-jobs.ts';
import { signerContract } from './signer-contract.ts';
import { type TestIdentityWishes, testIdentity, writeIdentity } from './test-identity.ts';

const DATA = Buffer.from('what is to be signed');

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'signer-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function configOf(folder: string, wishes: TestIdentityWishes = {}): Config {
  const { certificatePath, privateKeyPath } = writeIdentity(folder, testIdentity(wishes));
  chmodSync(privateKeyPath, 0o600);
  return configSchema.parse({
    jobs: { data_dir: folder, scratch_dir: folder },
    signing: {
      certificate_path: certificatePath,
      private_key_path: privateKeyPath,
      ...(wishes.algorithm && { algorithm: wishes.algorithm }),
    },
  }) as Config;
}

async function startedSigner(t: TestContext, config: Config): Promise<SignerProcess> {
  const signer = await SignerProcess.start({ config, launcher: new Launcher(), log: keptLog() });
  t.after(() => signer.close());
  return signer;
}

/** A client in this process, which takes every channel that it is given. */
async function clientOf(t: TestContext, signer: SignerProcess, timeoutMs?: number): Promise<RemoteSigner> {
  const client = new RemoteSigner(signer.identity, timeoutMs);
  const [own, others] = await socketPair(t);
  client.connect(own);
  t.after(() => own.destroy());
  const giveChannel = (channel: Socket): void => {
    client.connect(channel);
    // It is meant for another process, which would begin to read from it.
    channel._read(0);
    t.after(() => channel.destroy());
  };
  signer.attach({ ended: new Promise(() => undefined), giveChannel }, others);
  return client;
}

async function socketPair(t: TestContext): Promise<[Socket, Socket]> {
  const server = createServer().listen(join(newFolder(t), 'socket'));
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const own = createConnection(server.address() as string);
  const [others] = await accepted;
  server.close();
  return [own, others];
}

describe('a signer in a process of its own', () => {
  for (const algorithm of ['es256', 'es512', 'ps256', 'ed25519'] as const) {
    let opened: Promise<RemoteSigner> | undefined;
    // The channel is one of the suite, not of one test.
    const suite = { after: (end: () => void) => ends.push(end) } as unknown as TestContext;
    const ends: (() => void)[] = [];
    const open = async () => clientOf(suite, await startedSigner(suite, configOf(newFolder(suite), { algorithm })));
    signerContract(`${algorithm}, by a channel`, () => {
      opened ??= open();
      return opened;
    });
    test(`${algorithm}: the channel ends with the signer`, () => {
      for (const end of ends.reverse()) end();
    });
  }

  test('answers everything that it was asked before it was killed, and after', async (t) => {
    const signer = await startedSigner(t, configOf(newFolder(t), { algorithm: 'ps512' }));
    const clients = [await clientOf(t, signer), await clientOf(t, signer)];
    await clients[0]?.sign(DATA);
    for (let round = 0; round < 2; round += 1) {
      const asked = clients.flatMap((client) => Array.from({ length: 100 }, () => client.sign(DATA)));
      process.kill(signer.pid ?? 0, 'SIGKILL');
      assert.equal((await Promise.all(asked)).length, 200);
    }
  });

  test('does not sign with another identity than the one it was started with', async (t) => {
    const folder = newFolder(t);
    const signer = await startedSigner(t, configOf(folder));
    const client = await clientOf(t, signer, 1000);
    await client.sign(DATA);
    configOf(folder);
    process.kill(signer.pid ?? 0, 'SIGKILL');
    await sleep(0);
    await assert.rejects(client.sign(DATA));
  });

  test('goes on where a client breaks the protocol, whom it disconnects', async (t) => {
    const signer = await startedSigner(t, configOf(newFolder(t)));
    const client = await clientOf(t, signer);
    const [rude, others] = await socketPair(t);
    signer.attach({ ended: new Promise(() => undefined), giveChannel: () => undefined }, others);
    rude.write(Buffer.alloc(64, 0xff));
    rude.resume();
    await once(rude, 'close');
    assert.equal((await client.sign(DATA)).length, signer.identity.signatureSizeBytes);
  });

  test('serves others while a client asks for more than it takes', async (t) => {
    const signer = await startedSigner(t, configOf(newFolder(t), { algorithm: 'ps512' }));
    // Behind all that the other one asks for it would wait longer than this.
    const client = await clientOf(t, signer, 1000);
    const [greedy, others] = await socketPair(t);
    greedy.on('error', () => undefined);
    t.after(() => greedy.destroy());
    signer.attach({ ended: new Promise(() => undefined), giveChannel: () => undefined }, others);
    greedy.write(Buffer.alloc(8 * 50_000));
    await sleep(100);
    for (let count = 0; count < 20; count += 1) await client.sign(DATA);
  });

  test('does not start with a key that it cannot use, and says why as the service did', async (t) => {
    const config = configOf(newFolder(t));
    const expired = configOf(newFolder(t), { leaf: { notAfter: new Date(Date.now() - 1000) } });
    const missing = { ...config, signing: { ...config.signing, private_key_path: '/nowhere/key.pem' } };
    await assert.rejects(startedSigner(t, expired), { reason: 'IDENTITY_INVALID' });
    await assert.rejects(startedSigner(t, missing), { reason: 'IDENTITY_FILE_UNREADABLE' });
  });

  test('tells of a key file that others may read or change', async (t) => {
    const config = configOf(newFolder(t));
    const file = config.signing.private_key_path ?? '';
    for (const { mode, exposed } of [
      { mode: 0o600, exposed: null },
      { mode: 0o640, exposed: null },
      { mode: 0o644, exposed: { file, mode: '0644' } },
      { mode: 0o660, exposed: { file, mode: '0660' } },
    ]) {
      chmodSync(file, mode);
      assert.deepEqual((await startedSigner(t, config)).identity.exposedKey, exposed);
    }
  });
});

describe('the check of a signing identity', () => {
  test('passes one that both official readers accept', async (t) => {
    for (const algorithm of ['es256', 'ps256', 'ed25519'] as const) {
      await checkIdentity(await startedSigner(t, configOf(newFolder(t), { algorithm })), new Launcher());
    }
  });

  test('refuses one whose only extended key usage is that of C2PA, which the WASM reader calls invalid', async (t) => {
    const config = configOf(newFolder(t), { leaf: { extendedKeyUsages: [EXTENDED_KEY_USAGE.c2paClaimSigning] } });
    const signer = await startedSigner(t, config);
    await assert.rejects(checkIdentity(signer, new Launcher()), { reason: 'IDENTITY_INVALID' });
  });
});
