import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { hasLingeringNativeCall } from '#provenance/native-calls.ts';
import { assertValid } from '../formats/judges.ts';
import { readManifest } from './read-manifest.ts';
import { signWav, smallWav, testAuthor } from './sign-wav.ts';
import { type FakeAuthority, startAuthority } from './time-stamp-authority.ts';

describe('time-stamps', () => {
  let authority: FakeAuthority;
  before(async () => {
    authority = await startAuthority();
  });
  after(() => authority.close());

  const signStamped = (timeoutMs = 30_000, signal?: AbortSignal): ReturnType<typeof signWav> =>
    signWav(testAuthor({ timeStampAuthority: { url: authority.url, timeoutMs } }), {}, smallWav(), signal);

  test('are taken from an RFC 3161 responder, once for each signature', async () => {
    const before = authority.queryCount();
    const { bytes, manifest, measuredBytes } = await signStamped();
    await assertStamped(bytes);
    assert.equal(authority.queryCount() - before, 1);
    assert(manifest.length <= measuredBytes);
  });

  test('fail in bounded time where the responder never answers, and leave no native call behind', async () => {
    authority.behave('silent');
    await assert.rejects(signStamped(200), { reason: 'TIME_STAMP_UNAVAILABLE', transient: true });
    assert.equal(hasLingeringNativeCall(), false);
  });

  test('fail in bounded time where the responder sends its answer without end', async () => {
    authority.behave('endless');
    await assert.rejects(signStamped(), { reason: 'TIME_STAMP_UNAVAILABLE' });
  });

  test('fail where the responder stops midway', async () => {
    authority.behave('stalling');
    await assert.rejects(signStamped(200), { reason: 'TIME_STAMP_UNAVAILABLE' });
  });

  for (const behaviour of ['refusing', 'garbage', 'hanging-up', 'stale'] as const) {
    test(`fail where the responder is ${behaviour}`, async () => {
      authority.behave(behaviour);
      await assert.rejects(signStamped(), { reason: 'TIME_STAMP_UNAVAILABLE' });
    });
  }

  test('fail where nothing listens', async () => {
    const timeStampAuthority = { url: 'http://user:secret@127.0.0.1:1/tsa', timeoutMs: 5000 };
    await assert.rejects(signWav(testAuthor({ timeStampAuthority })), (error: Error) => {
      assert(!error.message.includes('secret'));
      return 'reason' in error && error.reason === 'TIME_STAMP_UNAVAILABLE';
    });
  });

  test('stop with the signal while the responder keeps silent', async () => {
    authority.behave('silent');
    const stop = new Error('stop');
    const controller = new AbortController();
    const signing = signStamped(60_000, controller.signal);
    await authority.nextQuery();
    controller.abort(stop);
    await assert.rejects(signing, stop);
  });
});

async function assertStamped(bytes: Uint8Array): Promise<void> {
  const { successCodes } = await readManifest(bytes);
  assert(successCodes.includes('timeStamp.validated'));
  await assertValid(bytes, 'audio/wav');
}
