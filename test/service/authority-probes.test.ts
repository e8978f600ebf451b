import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { createDependencyProbes } from '#dependency-probes.ts';
import { Launcher } from '#processes/launcher.ts';

const AUTHORITY = { kind: 'time_stamp_authority' } as const;

test('an authority is asked for a time-stamp once it takes connections, and for the next one after five minutes', async (t) => {
  const server = createServer((socket) => socket.destroy());
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  server.close();
  await once(server, 'close');
  const config = configSchema.parse({ signing: { tsa_url: `http://127.0.0.1:${port}` } }) as Config;
  const probes = createDependencyProbes({ config: () => config, launcher: new Launcher() });
  const problem = await probes.problemOf(AUTHORITY);
  assert.match(problem ?? '', new RegExp(`^127.0.0.1:${port} could not be reached: nothing listens there`));
  assert.equal(probes.minPauseMs(AUTHORITY), 0);
  await listen(port);
  t.after(() => server.close());
  assert.equal(await probes.problemOf(AUTHORITY), null);
  const pauseMs = probes.minPauseMs(AUTHORITY);
  assert.ok(pauseMs > 0 && pauseMs <= 300_000, `${pauseMs} ms`);
});
