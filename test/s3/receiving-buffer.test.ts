import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type RequestListener, type Server } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { pemOf } from '#provenance/identity/certificate.ts';
import { receivingBuffer } from '#s3/receiving-buffer.ts';
import { testIdentity } from '../provenance/test-identity.ts';

const BODY_BYTES = 3 * 1024 * 1024;
/** Fewer than bodies, so that each is used again. */
const SOCKETS = 2;
const { chain, privateKey } = testIdentity();
const identity = { cert: chain.map(pemOf).join(''), key: privateKey.export({ type: 'pkcs8', format: 'pem' }) };

/** Each address has a body of its own. */
const bodies = Array.from({ length: 4 }, () => randomBytes(BODY_BYTES));
const answer: RequestListener = ({ url = '' }, response) => response.end(bodies[Number(url.slice(1))]);

for (const [scheme, module, server] of [
  ['HTTP', http, http.createServer(answer)],
  ['HTTPS', https, https.createServer(identity, answer)],
] as const) {
  describe(`sockets of ${scheme} that share a receiving buffer`, () => {
    // The certificate is nobody's but this test's, and who it is for is not what is tested.
    const options = { keepAlive: true, maxSockets: SOCKETS, rejectUnauthorized: false };
    const agent = new module.Agent({ ...options, ...receivingBuffer() });
    before(async () => {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
    });
    const ask = async (index: number): Promise<Buffer> => {
      const { port } = (server as Server).address() as AddressInfo;
      const request = module.get({ agent, host: '127.0.0.1', port, path: `/${index}` });
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      return await slowlyRead(response);
    };

    test('each give what was sent over it, also where it is used again', async (context) => {
      context.after(() => {
        agent.destroy();
        server.close();
      });
      const read = await Promise.all(bodies.map((_, index) => ask(index)));
      for (const [index, body] of bodies.entries()) assert.ok(read[index]?.equals(body), `body ${index}`);
    });
  });
}

/** Holds the answer up after every piece, so that others come in between. */
async function slowlyRead(response: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of response) {
    pieces.push(piece as Buffer);
    await setImmediate();
  }
  return Buffer.concat(pieces);
}
