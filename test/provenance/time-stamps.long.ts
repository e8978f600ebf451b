import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, mock, test } from 'node:test';
import { hasAbandonedNativeCall } from '#concurrency/race-abort.ts';
import type { AppError } from '#errors/app-error.ts';
import type { ManifestAuthor, TimeStampSettings } from '#provenance/manifest-author.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { CROWD, type FakeAuthority, startAuthority } from './time-stamp-authority.ts';

const TIMEOUT_MS = 30_000;

let authority: FakeAuthority;
let other: FakeAuthority;
before(async () => {
  // No time passes for an authority unless a test says so. The types do not know this API.
  mock.timers.enable({ apis: ['AbortSignal.timeout' as never] });
  [authority, other] = await Promise.all([startAuthority(), startAuthority()]);
});
after(() => {
  mock.timers.reset();
  authority.close();
  other.close();
});
beforeEach(() => {
  authority.behave('answering');
  other.behave('answering');
});

function authorWith(settings: Partial<TimeStampSettings> = {}): ManifestAuthor {
  return testAuthor({ timeStamps: { urls: [authority.url], timeoutMs: TIMEOUT_MS, isRequired: true, ...settings } });
}

/** An author that knows how large the answers of its authorities are. */
async function experiencedAuthor(settings: Partial<TimeStampSettings> = {}): Promise<ManifestAuthor> {
  const author = authorWith(settings);
  await signWav(author);
  return author;
}

async function assertStamped(bytes: Uint8Array): Promise<void> {
  const { successCodes } = await readManifest(bytes);
  assert(successCodes.includes('timeStamp.validated'));
  await assertValid(bytes, 'audio/wav');
}

describe('time-stamps', () => {
  test('are taken from an RFC 3161 responder, once for each signature and once to learn their size', async () => {
    const before = authority.queryCount();
    const author = authorWith();
    for (const queries of [2, 3]) {
      const { bytes, manifest, measuredBytes } = await signWav(author);
      await assertStamped(bytes);
      assert.equal(authority.queryCount() - before, queries);
      assert.equal(manifest.length, measuredBytes);
    }
  });

  test('take little more space than they need', async () => {
    const [stamped, plain] = [await signWav(authorWith()), await signWav(testAuthor())];
    const spaceBytes = stamped.measuredBytes - plain.measuredBytes;
    const answerBytes = authority.lastAnswerBytes();
    assert(spaceBytes >= answerBytes && spaceBytes < answerBytes + 512);
  });

  test('that are larger than the last one are asked for again, with more space', async () => {
    const author = await experiencedAuthor();
    authority.behave('larger');
    const before = authority.queryCount();
    const { bytes, manifest, measuredBytes } = await signWav(author);
    await assertStamped(bytes);
    assert.equal(authority.queryCount() - before, 2);
    assert.equal(manifest.length, measuredBytes);
  });

  test('of signatures at the same time are waited for at the same time', async () => {
    const author = await experiencedAuthor();
    authority.behave('gathering');
    const signed = await Promise.all(Array.from({ length: CROWD }, () => signWav(author)));
    for (const { bytes } of signed) await assertStamped(bytes);
  });

  test('stop with the signal while the responder keeps silent', async () => {
    authority.behave('silent');
    const stop = new Error('stop');
    const controller = new AbortController();
    const signing = signWav(authorWith(), {}, smallWav(), controller.signal);
    await authority.nextQuery();
    controller.abort(stop);
    await assert.rejects(signing, stop);
  });
});

const FAULTS = {
  silent: /^\S+ did not answer within 30000 ms$/,
  endless: /^\S+ sent more than 32768 bytes$/,
  stalling: /^\S+ did not answer within 30000 ms$/,
  refusing: /^\S+ answered with the HTTP status 503$/,
  html: /^\S+ sent text\/html instead of a time-stamp$/,
  garbage: /^\S+ sent an answer that is no valid time-stamp of this signature$/,
  rejecting: /^\S+ sent an answer that is no valid time-stamp of this signature$/,
  stale: /^\S+ sent an answer that is no valid time-stamp of this signature$/,
  'other-hash': /^\S+ sent an answer that is no valid time-stamp of this signature$/,
  'other-nonce': /^\S+ sent an answer that is no valid time-stamp of this signature$/,
  'hanging-up': /^\S+ could not be reached/,
} as const;

for (const [behaviour, problem] of Object.entries(FAULTS) as [keyof typeof FAULTS, RegExp][]) {
  const misbehave = (): void => authority.behave(behaviour, () => mock.timers.tick(TIMEOUT_MS));

  describe(`where the first authority is ${behaviour}`, () => {
    test('the error names it and what it did, and no native call is left behind', async () => {
      const author = await experiencedAuthor();
      misbehave();
      await assert.rejects(signWav(author), (error: AppError) => {
        assert.equal(error.reason, 'TIME_STAMP_UNAVAILABLE');
        assert.equal(error.isTransient, true);
        const { problems } = error.details as { problems: string[] };
        assert.equal(problems.length, 1);
        assert.match(problems[0] ?? '', problem);
        assert(problems[0]?.startsWith(`${new URL(authority.url).host} `));
        return true;
      });
      assert.equal(hasAbandonedNativeCall(), false);
    });

    test('the second one is asked', async () => {
      misbehave();
      const author = authorWith({ urls: [authority.url, other.url] });
      await assertStamped((await signWav(author)).bytes);
    });

    test('the output is valid without a time-stamp, and a warning says so, where none is required', async () => {
      misbehave();
      const { bytes, warnings } = await signWav(authorWith({ isRequired: false }));
      await assertValid(bytes, 'audio/wav');
      assert.deepEqual(
        warnings.map(({ reason }) => reason),
        ['TIME_STAMP_MISSING'],
      );
    });
  });
}

test('an authority that fails only when the signature is made fails it, and its output where it is not required is valid', async () => {
  for (const isRequired of [true, false]) {
    const author = await experiencedAuthor({ isRequired });
    authority.behave('refusing');
    const signing = signWav(author);
    if (isRequired) await assert.rejects(signing, { reason: 'TIME_STAMP_UNAVAILABLE' });
    else await assertValid((await signing).bytes, 'audio/wav');
    authority.behave('answering');
    await assertStamped((await signWav(author)).bytes);
  }
});

test('a second authority with larger answers than the first takes over', async () => {
  other.behave('larger');
  const author = await experiencedAuthor({ urls: [authority.url, other.url] });
  authority.behave('refusing');
  await assertStamped((await signWav(author)).bytes);
});

test('credentials in an address are not shown where nothing listens', async () => {
  const { host, port } = ownAddress();
  const author = authorWith({ urls: [`http://user:secret@${host}:${port}/tsa`] });
  await assert.rejects(signWav(author), (error: AppError) => {
    assert(!JSON.stringify([error.message, error.details]).includes('secret'));
    return error.reason === 'TIME_STAMP_UNAVAILABLE';
  });
});
