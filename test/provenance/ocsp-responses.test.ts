import assert from 'node:assert/strict';
import { after, describe, mock, test } from 'node:test';
import { judgeResponse } from '#provenance/revocation/judge-response.ts';
import { type Answer, startResponder } from './ocsp-responder.ts';

/** The beginning of a GeneralizedTime. */
const TIME = Buffer.of(0x18, 15);
const DAY_MS = 24 * 60 * 60_000;
const responder = await startResponder();
after(() => responder.close());

function judged(response: Uint8Array, at = new Date()) {
  return judgeResponse(response, responder, at);
}

async function problemOf(answer: Answer): Promise<string> {
  const state = judged(await responder.respond(answer));
  assert(state.status === 'none', state.status);
  return state.problem;
}

describe('an OCSP response', () => {
  test('of the responder that the issuer appointed says good, revoked or unknown', async () => {
    for (const answer of ['good', 'revoked', 'unknown'] as const) {
      assert.equal(judged(await responder.respond(answer)).status, answer);
    }
  });

  test('says since when a certificate is revoked, and that it was good before', async () => {
    const revoked = await responder.respond('revoked-later');
    assert.equal(judged(revoked, new Date('2029-12-31')).status, 'good');
    const later = judged(revoked, new Date('2030-01-02'));
    assert(later.status === 'revoked');
    assert.deepEqual(later.revokedAt, new Date('2030-01-01'));
  });

  test('is good for a signature that was made before it, and none for one after its end', async () => {
    const response = await responder.respond('good');
    assert.equal(judged(response, new Date(Date.now() - 30 * DAY_MS)).status, 'good');
    const late = judged(response, new Date(Date.now() + 8 * DAY_MS));
    assert(late.status === 'none' && late.problem.startsWith('it ended on '));
  });

  test('that lies counts as none, and why is said', async (t) => {
    assert.equal(await problemOf('other-certificate'), 'it is about another certificate');
    assert.equal(await problemOf('other-key'), 'it is not signed by the issuer or a responder of it');
    assert.equal(await problemOf('unappointed'), 'it is not signed by the issuer or a responder of it');
    const response = await responder.respond('good');
    mock.timers.enable({ apis: ['Date'], now: Date.now() - DAY_MS });
    t.after(() => mock.timers.reset());
    const early = judged(response);
    assert(early.status === 'none' && early.problem.startsWith('it is of the future ('));
  });

  test('of which any bit was changed counts as none, or says the same', async () => {
    const response = await responder.respond('good');
    const good = judged(response);
    for (let at = 0; at < response.length; at += 1) {
      const changed = Buffer.from(response);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const state = judged(changed);
      if (state.status !== 'none') assert.deepEqual(state, good, `byte ${at}`);
    }
  });

  test('that is not in DER to the last byte counts as none', async () => {
    const response = await responder.respond('good');
    const longer = Buffer.concat([response, Buffer.of(0)]);
    const endless = Buffer.concat([Buffer.of(0x30, 0x80), response.subarray(4), Buffer.of(0, 0)]);
    const month = Buffer.from(response);
    // The second time is thisUpdate.
    month.write('13', response.indexOf(TIME, response.indexOf(TIME) + 1) + TIME.length + 4);
    for (const bytes of [longer, endless, month]) {
      assert.deepEqual(judged(bytes), { status: 'none', problem: 'it is no OCSP response' });
    }
  });

  test('that is cut off, empty, too large or nested without end counts as none', async () => {
    const response = await responder.respond('good');
    const nested = Buffer.concat(Array.from({ length: 4000 }, () => Buffer.from([0x30, 0x80])));
    for (let length = 0; length < response.length; length += 1) {
      assert.equal(judged(response.subarray(0, length)).status, 'none');
    }
    for (const bytes of [Buffer.alloc(20_000, 0x30), nested, Buffer.from('no response')]) {
      assert.equal(judged(bytes).status, 'none');
    }
  });
});
