import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { riff } from '#formats/riff/riff.ts';
import { requestWith, signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { memorySource } from '../support/memory-bytes.ts';

const never = new AbortController().signal;

const inDays = (days: number): Date => new Date(Date.now() + days * 24 * 60 * 60 * 1000);

describe('an identity that has expired', () => {
  test('is blamed for a manifest that cannot be made', async () => {
    const { signer } = await testIdentity({ leaf: { notBefore: inDays(-2), notAfter: inDays(-1) } });
    await assert.rejects(signWav(testAuthor({ signer })), { reason: 'IDENTITY_EXPIRED', code: 'INTERNAL_ERROR' });
  });

  test('is blamed before anything is read where only an intermediate certificate has expired', async () => {
    const { signer } = await testIdentity({ intermediate: { notAfter: inDays(-0.5) } });
    await assert.rejects(testAuthor({ signer }).draft(requestWith(), never), { reason: 'IDENTITY_EXPIRED' });
  });

  test('is blamed where it expires between measuring and signing', async (t) => {
    const { signer } = await testIdentity();
    const draft = await testAuthor({ signer }).draft(requestWith(), never);
    const binding = riff.placeholderBinding(await riff.readLayout(memorySource(smallWav(), 'source.wav'), never));
    await draft.measure([binding], never);
    t.mock.timers.enable({ apis: ['Date'], now: inDays(100) });
    await assert.rejects(draft.sign([binding], never), { reason: 'IDENTITY_EXPIRED' });
  });
});
