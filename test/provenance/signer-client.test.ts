import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SignerClient } from '#provenance/signer-client.ts';
import {
  MAX_PENDING_REQUESTS,
  MAX_REQUEST_BYTES,
  receiveFrames,
  STATUS,
  sendFrame,
} from '#provenance/signer-protocol.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import { socketPair } from './connected-client.ts';

const IDENTITY: IdentityDescription = {
  ...{ name: 'news', process: 0, key: 7, keyKind: 'pem', algorithm: 'es256', kind: 'configured', subject: 'News' },
  ...{ file: 'news.pem', deviations: [], certificateChain: [], signatureSizeBytes: 64, exposedKey: null },
  ...{ notAfter: '2099-01-01T00:00:00.000Z', tsaUrls: [], publisher: null },
};

test('a client asks for each signature once, also for more than a signer process takes at a time', async (t) => {
  const [own, signers] = await socketPair();
  t.after(() => own.destroy());
  const requested: string[] = [];
  receiveFrames(
    signers,
    MAX_REQUEST_BYTES,
    ({ id, body }) => {
      requested.push(body.toString());
      sendFrame(signers, { id, code: STATUS.signature, body: Buffer.alloc(IDENTITY.signatureSizeBytes) });
    },
    assert.fail,
  );
  const client = new SignerClient([IDENTITY], 600_000);
  client.connect(own, IDENTITY.process);
  const signer = client.identityOf('news').signer;
  const pieces = Array.from({ length: MAX_PENDING_REQUESTS + 2 }, (_, index) => `piece ${index}`);
  for (const piece of pieces) await signer.sign(Buffer.from(piece));
  await Promise.all(pieces.map((piece) => signer.sign(Buffer.from(piece))));
  assert.deepEqual(requested, [...pieces, ...pieces]);
});
