import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { DEFAULT_IDENTITY } from '#config/identities.ts';
import { itemAt } from '#errors/assert.ts';
import type { Signer } from '#provenance/signer.ts';
import { SignerClient } from '#provenance/signer-client.ts';
import type { SignerAccess, Signers } from '#provenance/signers.ts';
import { type IdentityDescription, signerProcessesOf } from '#provenance/signing-identity.ts';
import { type TestIdentityWishes, testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Writes an identity to a folder, and returns the configuration that has it. */
export async function configOf(folder: string, wishes: TestIdentityWishes = {}): Promise<Config> {
  const { certificatePath, privateKeyPath } = writeIdentity(folder, await testIdentity(wishes));
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

export interface ConnectedClient {
  readonly client: SignerClient;
  readonly access: SignerAccess;
  /** Has the process of the client be gone for the signer. */
  readonly exit: () => void;
}

/** A client in this process, which takes every channel that it is given. Signing takes less than its time-out on any machine. */
export async function connectedClient(
  t: TestContext,
  signers: Signers,
  {
    timeoutMs = 600_000,
    identities = signers.identities,
    kill = assert.fail,
  }: {
    readonly timeoutMs?: number;
    readonly identities?: readonly IdentityDescription[];
    readonly kill?: (because: string) => void;
  } = {},
): Promise<ConnectedClient> {
  const client = new SignerClient(identities, timeoutMs);
  const pairs = await Promise.all(signerProcessesOf(identities).map(socketPair));
  client.connectAll((index) => itemAt(itemAt(pairs, index), 0));
  t.after(() => {
    for (const [own] of pairs) own.destroy();
  });
  const giveChannel = (channel: Socket, signer: number): void => {
    client.connect(channel, signer);
    // It is meant for another process, which would begin to read from it.
    channel._read(0);
    t.after(() => channel.destroy());
  };
  const { promise: exited, resolve: exit } = Promise.withResolvers<void>();
  const channelOf = (index: number) => itemAt(itemAt(pairs, index), 1);
  const access = signers.attach({ exited, giveChannel, kill }, channelOf);
  return { client, access, exit };
}

/** A client in this process that may sign. */
export async function clientOf(t: TestContext, signers: Signers, name = DEFAULT_IDENTITY): Promise<Signer> {
  const { client, access } = await connectedClient(t, signers);
  access.allow(name);
  return client.identityOf(name).signer;
}

export async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer().listen(join(temporaryFolder(), 'socket'));
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const own = createConnection(server.address() as string);
  const [others] = await accepted;
  server.close();
  return [own, others];
}
