import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { ByteSource } from '#bytes/byte-source.ts';
import { readVerifiableFile } from '#formats/formats.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { signAudio, verify } from '#operations/registry.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { runInput } from '../support/run-input.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { decoded } from '../support/verification/forged-files.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// A server may answer with other bytes when a file is read again, under the same version. The bytes that the readers get are judged.

const folder = temporaryFolder();
const never = new AbortController().signal;
const NAME = 'film.avif';
let count = 0;

makeMedia(folder, ['-f', 'lavfi', '-i', 'testsrc2=s=64x48:r=5:d=1', NAME]);
const signed = await signBySdk(readFileSync(join(folder, NAME)), 'image/avif', 'create');
const forged = Buffer.from(signed);
// By this brand, players show the picture of the metadata in place of the film; no hash covers it.
forged.write('avif', 8);

/** Returns a source that answers with other bytes once its layout has been read. */
async function changing(later: Buffer): Promise<ByteSource> {
  let readCount = 0;
  const counted = (bytes: () => Buffer): ByteSource => ({
    ...memorySource(signed, NAME),
    async read(target, offset) {
      target.set(bytes().subarray(offset, offset + target.length));
      readCount += 1;
    },
  });
  await readVerifiableFile(
    counted(() => signed),
    never,
  );
  const layoutReads = readCount;
  readCount = 0;
  return counted(() => (readCount < layoutReads ? signed : later));
}

function servedBy(source: ByteSource): InputResolver {
  return new InputResolver({
    local_file_path: async ({ path }) => (path === NAME ? source : memorySource(smallWav(), path)),
  });
}

async function stateOf(later: Buffer): Promise<string> {
  const asked = { input: { type: 'local_file_path', path: NAME }, params: {} } as const;
  const services = { inputs: servedBy(await changing(later)) };
  return (await runInput(verify, asked, join(folder, `case-${count++}`), { services })).verification.state;
}

/** Signs a file as made from the source. Returns what the manifest says of that. */
async function parentOf(later: Buffer) {
  const parent = { type: 'file', source: { type: 'local_file_path', path: NAME } };
  const input = { type: 'local_file_path', path: 'new.wav' } as const;
  const asked = { input, params: { parent, all_actions_included: true } };
  const services = { inputs: servedBy(await changing(later)) };
  const { outputPath } = await runInput(signAudio, asked, join(folder, `case-${count++}`), { services });
  const { allActionsIncluded, ingredients } = await readManifest(readFileSync(outputPath), 'audio/wav');
  const failures = ingredients[0]?.validation_results?.activeManifest.failure.map(({ code }) => code) ?? [];
  return { allActionsIncluded, failures: failures.filter((code) => code !== 'signingCredential.untrusted') };
}

describe('a file that is read again as another one', () => {
  test('plays otherwise', () => {
    assert.notEqual(decoded(NAME, forged, folder), decoded(NAME, signed, folder));
  });

  test('is judged by the bytes that the readers get', async () => {
    assert.equal(await stateOf(signed), 'valid');
    assert.equal(await stateOf(forged), 'invalid');
  });

  test('is recorded as the parent that the readers get', async () => {
    assert.deepEqual(await parentOf(signed), { allActionsIncluded: true, failures: [] });
    const failures = ['assertion.bmffHash.additionalExclusionsPresent'];
    assert.deepEqual(await parentOf(forged), { allActionsIncluded: false, failures });
  });
});
