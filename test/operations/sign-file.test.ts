import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { InputContext, InputOutcome, InputPhase } from '#operations/operation.ts';
import { signAudio, signFragmented } from '#operations/registry.ts';
import type { ManifestAuthor } from '#provenance/manifest-author.ts';
import { checkOutput } from '#provenance/official-reader.ts';
import { startAuthority } from '../provenance/time-stamp-authority.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import { runInput } from '../support/run-input.ts';

interface Signing {
  readonly output: string;
  /** The messages to the job, in order. */
  readonly told: readonly (InputPhase | 'awaits')[];
  readonly outcome: Promise<InputOutcome>;
}

interface Wishes {
  readonly readBack: boolean;
  readonly dataBytes?: number;
  readonly author?: ManifestAuthor;
  /** Signs a publication instead of a file. */
  readonly publication?: boolean;
  /** Does something at a phase. */
  readonly reached?: (phase: InputPhase, output: string) => void;
}

/** Signs a small file as a worker does, or a publication. */
async function signing(
  t: TestContext,
  { readBack, reached, dataBytes, author = testAuthor(), publication = false }: Wishes,
): Promise<Signing> {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-sign-file-'));
  t.after(() => rm(folder, { recursive: true }));
  const [output, path] = [join(folder, 'output'), join(folder, 'sound.wav')];
  writeFileSync(path, smallWav(dataBytes));
  const told: (InputPhase | 'awaits')[] = [];
  const context: Partial<InputContext> = {
    reached: (phase) => {
      told.push(phase);
      reached?.(phase, output);
    },
    awaitSignature: (sign) => {
      told.push('awaits');
      return sign();
    },
  };
  const outputChecker = readBack ? checkOutput : null;
  const worker = { context, services: { author, outputChecker, fragmentChecks: 'all' as const } };
  if (!publication) {
    return { output, told, outcome: runInput(signAudio, { input: { type: 'local_file_path', path } }, folder, worker) };
  }
  const input = { type: 'local_folder_path', path: makeFfmpegHls(makeFilm(folder), join(folder, 'hls')) } as const;
  const params = { playlist_pattern: '*.m3u8', init_pattern: 'init_*.mp4', frag_pattern: '*.m4s' };
  return { output, told, outcome: runInput(signFragmented, { input, params }, folder, worker) };
}

test('an output that does not read back as it was signed is not delivered, and nothing of it stays', async (t) => {
  const spoil = (phase: InputPhase, output: string) => {
    if (phase !== 'signed') return;
    const [staged = ''] = readdirSync(output);
    const file = openSync(join(output, staged), 'r+');
    writeSync(file, Buffer.from('spoilt'), 0, 6, 1000);
    closeSync(file);
  };
  const { output, outcome } = await signing(t, { readBack: true, reached: spoil });
  await assert.rejects(outcome, { reason: 'READ_BACK_FAILED' });
  assert.deepEqual(readdirSync(output), []);
});

test('the signature is waited for when the output is copied, and the output is read back, sealed and delivered behind it', async (t) => {
  const { told, outcome } = await signing(t, { readBack: true });
  await outcome;
  const phases = told.filter((one) => one !== 'sealed' && one !== 'verified');
  assert.deepEqual(phases, ['resolved', 'staged', 'copied', 'awaits', 'signed', 'delivered']);
  assert(told.indexOf('signed') < Math.min(told.indexOf('sealed'), told.indexOf('verified')));
});

test('the outcome names the digest of the manifest in the output, of a file and of a publication', async (t) => {
  for (const publication of [false, true]) {
    const { manifestDigest, outputPath } = await (await signing(t, { readBack: false, publication })).outcome;
    const files = publication ? readdirSync(outputPath).filter((name) => name.startsWith('init_')) : [''];
    for (const name of files) {
      const store = storeIn(readFileSync(join(outputPath, name)));
      assert.equal(manifestDigest, createHash('sha256').update(store).digest('hex'), name);
    }
    assert(files.length > 0);
  }
});

/** Returns the first JUMBF box of a file, which is its manifest store. */
function storeIn(bytes: Buffer): Buffer {
  const start = bytes.indexOf('jumb', 0, 'latin1') - 4;
  assert(start > 0);
  return bytes.subarray(start, start + bytes.readUInt32BE(start));
}

test('an output is written again, and the init segments of a publication alone, where the time-stamp has grown', async (t) => {
  const authority = await startAuthority();
  t.after(() => authority.close());
  for (const publication of [false, true]) {
    const author = testAuthor({ timeStamps: { urls: [authority.url], timeoutMs: 600_000, isRequired: true } });
    authority.behave('answering');
    await signWav(author);
    authority.behave('larger');
    const { told, outcome } = await signing(t, { readBack: true, author, publication });
    assert.deepEqual((await outcome).warnings, []);
    const times = (phase: InputPhase): number => told.filter((each) => each === phase).length;
    assert.deepEqual(
      [times('staged'), times('copied'), times('signed'), times('verified')],
      publication ? [1, 2, 1, 1] : [2, 2, 1, 1],
    );
  }
});
