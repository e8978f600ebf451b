import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { createKeySigner } from '#provenance/identity/key-signer.ts';
import { createOutputChecker } from '#provenance/official-reader.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity, testKey } from '../support/manifests/test-identity.ts';

const { signal } = new AbortController();

describe('reading an output back', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'read-back-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const author = testAuthor();

  async function readBack(bytes: Uint8Array, mediaType = 'audio/wav'): Promise<void> {
    const file = path.join(folder, `.${Math.random()}.part`);
    writeFileSync(file, bytes);
    await createOutputChecker().readBack({ path: file, mediaType }, signal);
  }

  test('accepts an output that only lacks trust in its certificate', async () => {
    await readBack((await signWav(author)).bytes);
  });

  test('accepts an output whose parent was tampered with', async () => {
    const { bytes } = await signWav(author);
    bytes.writeUInt8(bytes.readUInt8(60) ^ 1, 60);
    const file = path.join(folder, 'tampered.wav');
    writeFileSync(file, bytes);
    const parent = { kind: 'file', path: file, title: 'tampered.wav', mediaType: 'audio/wav' } as const;
    await readBack((await signWav(author, { origin: parent })).bytes);
  });

  test('refuses a sample that was changed, a byte of the manifest that was changed, and a file without a manifest', async () => {
    const { bytes } = await signWav(author, { assertions: [{ label: 'com.example.note', data: 'as it was' }] });
    const sample = Buffer.from(bytes);
    sample.writeUInt8(sample.readUInt8(60) ^ 1, 60);
    const note = Buffer.from(bytes);
    note.write('As', note.indexOf('as it was'), 'latin1');
    for (const damaged of [sample, note, smallWav(), Buffer.alloc(0), bytes.subarray(0, bytes.length - 2000)]) {
      await assert.rejects(readBack(damaged), { reason: 'READ_BACK_FAILED' });
    }
  });

  test('refuses a signature by another key than the certificate speaks of', async () => {
    const { signer } = await testIdentity();
    const stranger = createKeySigner(testKey('es256'), 'es256', signer.certificateChain);
    const { bytes } = await signWav(testAuthor({ signer: stranger }));
    await assert.rejects(readBack(bytes), { reason: 'READ_BACK_FAILED' });
  });

  test('refuses a file that does not exist', async () => {
    const missing = path.join(folder, 'missing.wav');
    await assert.rejects(createOutputChecker().readBack({ path: missing, mediaType: 'audio/wav' }, signal), {
      reason: 'READ_BACK_FAILED',
    });
  });

  test('stops with the signal', async () => {
    const stop = new Error('stop');
    const file = path.join(folder, 'any.wav');
    await assert.rejects(
      createOutputChecker().readBack({ path: file, mediaType: 'audio/wav' }, AbortSignal.abort(stop)),
      stop,
    );
  });
});
