import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path, { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { judgeManifest } from '#provenance/dry-run/dry-run-manifest.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { createKeySigner } from '#provenance/identity/key-signer.ts';
import { checkOutput, createFragmentReader } from '#provenance/official-reader.ts';
import { sdkProblem } from '#provenance/sdk/sdk-problem.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { type TestIdentityWishes, testIdentity, testKey } from '../support/manifests/test-identity.ts';
import { folderAt } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signFolder } from '../support/publications/sign-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();

describe('reading an output back', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'read-back-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const author = testAuthor();

  async function readBack(bytes: Uint8Array, mediaType = 'audio/wav'): Promise<void> {
    const file = path.join(folder, `.${Math.random()}.part`);
    writeFileSync(file, bytes);
    await checkOutput({ path: file, mediaType }, signal);
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
    await assert.rejects(checkOutput({ path: missing, mediaType: 'audio/wav' }, signal), {
      reason: 'READ_BACK_FAILED',
    });
  });

  test('stops with the signal', async () => {
    const stop = new Error('stop');
    const file = path.join(folder, 'any.wav');
    await assert.rejects(checkOutput({ path: file, mediaType: 'audio/wav' }, AbortSignal.abort(stop)), stop);
  });
});

describe('the fragment reader', async () => {
  const RESULTS = { answer: 'results', anchors: null } as const;
  const folder = temporaryFolder();
  const made = folderAt(makeFfmpegDash(makeFilm(folder), join(folder, 'dash')));
  const { files, renditions } = await signFolder(made, { playlist: '*.mpd', init: '*init*', frag: '*.m4s' });
  const [{ init, fragments }] = renditions as [{ init: string; fragments: readonly string[] }];
  const initBytes = files[init] as Buffer;
  const fragmentBytes = files[fragments[0] as string] as Buffer;
  const reader = createFragmentReader();

  test('accepts what was signed, and tells its validation results', async () => {
    await reader.readBack(initBytes, fragmentBytes, 'name', signal);
    const report = await reader.read(initBytes, fragmentBytes, RESULTS, signal);
    assert.ok('validation_results' in report);
    assert.ok(
      report.validation_results?.activeManifest?.success.some(({ code }) => code === 'assertion.bmffHash.match'),
    );
  });

  test('reads as many at once as it says, and ends its threads when one is given up', async () => {
    const checks = Array.from({ length: reader.maxConcurrency }, () =>
      reader.readBack(initBytes, fragmentBytes, 'name', signal),
    );
    await Promise.all(checks);
    const abort = new AbortController();
    const given = reader.readBack(initBytes, fragmentBytes, 'name', abort.signal);
    abort.abort(new Error('given up'));
    await assert.rejects(given, /given up/);
    await reader.readBack(initBytes, fragmentBytes, 'name', signal);
  });

  test('refuses a changed fragment, and an init segment without a manifest', async () => {
    const changed = Buffer.from(fragmentBytes);
    changed.writeUInt8((changed.at(-1) as number) ^ 1, changed.length - 1);
    const source = await made.open(init, signal);
    const unsigned = Buffer.alloc(source.sizeBytes);
    await source.read(unsigned, 0, signal);
    for (const [first, second] of [
      [initBytes, changed],
      [unsigned, fragmentBytes],
    ] as const) {
      await assert.rejects(
        reader.readBack(first, second, 'name', signal),
        (error) => error instanceof AppError && error.reason === 'OUTPUT_PART_INVALID',
      );
    }
    assert.ok('problem' in (await reader.read(unsigned, fragmentBytes, RESULTS, signal)));
  });
});

async function manifestBy(wishes: TestIdentityWishes): Promise<Uint8Array> {
  return (await signWav(testAuthor({ signer: (await testIdentity(wishes)).signer }))).manifest;
}

describe('both official readers judge a manifest without its asset', () => {
  test('and hold nothing against a sound one, whoever trusts its certificate', async () => {
    const { problems, report } = await judgeManifest(await manifestBy({}), signal);
    assert.deepEqual(problems, []);
    assert.ok(report?.active_manifest !== undefined);
  });

  test('and one is enough to find fault: only the WASM reader refuses a certificate for signing claims alone', async () => {
    const manifest = await manifestBy({ leaf: { extendedKeyUsages: [EXTENDED_KEY_USAGE.c2paClaimSigning] } });
    const { problems } = await judgeManifest(manifest, signal);
    assert.deepEqual(problems, [{ reader: 'wasm', problem: 'signingCredential.invalid' }]);
  });

  test('and find a signature that does not fit', async () => {
    const manifest = Buffer.from(await manifestBy({}));
    const at = manifest.indexOf('c2pa.opened');
    manifest.write('c2pa.0pened', at, 'latin1');
    const { problems } = await judgeManifest(manifest, signal);
    assert.deepEqual(new Set(problems.map(({ reader }) => reader)), new Set(['native', 'wasm']));
  });

  test('and what cannot be read is a problem, and no failure of theirs', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('not a manifest store'), Buffer.alloc(64)]) {
      const { problems, report } = await judgeManifest(bytes, signal);
      assert.equal(problems.length, 2);
      assert.equal(report, null);
    }
  });
});

test('what callers are told of an error of the SDK holds no stack, which would name files of this host', () => {
  const stack = [
    'Error: no number',
    '    at f (file:///srv/app/node_modules/c2pa.js:572:25)',
    '    at wasm://wasm/02:0x1',
  ];
  const problem = sdkProblem(new Error(`Serde(JsValue(Error: no number\n${stack.join('\n')}))`));
  assert.match(problem, /no number/);
  assert.doesNotMatch(problem, /c2pa\.js|wasm:/);
});
