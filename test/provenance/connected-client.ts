import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import type { Signer } from '#provenance/signer.ts';
import { SignerClient } from '#provenance/signer-client.ts';
import type { SignerAccess, SignerSupervisor } from '#provenance/signer-supervisor.ts';
import { DEFAULT_IDENTITY } from '#provenance/signing-identity.ts';
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
  signer: SignerSupervisor,
  timeoutMs = 600_000,
  identities = [signer.identity],
): Promise<ConnectedClient> {
  const client = new SignerClient(identities, timeoutMs);
  const [own, others] = await socketPair();
  client.connect(own);
  t.after(() => own.destroy());
  const giveChannel = (channel: Socket): void => {
    client.connect(channel);
    // It is meant for another process, which would begin to read from it.
    channel._read(0);
    t.after(() => channel.destroy());
  };
  const { promise: exited, resolve: exit } = Promise.withResolvers<void>();
  const access = signer.attach({ exited, giveChannel, kill: assert.fail }, others);
  return { client, access, exit };
}

/** A client in this process that may sign. */
export async function clientOf(t: TestContext, signer: SignerSupervisor, timeoutMs?: number): Promise<Signer> {
  const { client, access } = await connectedClient(t, signer, timeoutMs);
  access.allow(DEFAULT_IDENTITY);
  return client.signerOf(DEFAULT_IDENTITY);
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
