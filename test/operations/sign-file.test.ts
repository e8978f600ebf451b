import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import { localFolderOpener } from '#inputs/local/local-folder.ts';
import type { InputContext, InputOutcome, InputPhase, OperationServices } from '#operations/operation.ts';
import { signAudio, signFragmented } from '#operations/registry.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import type { ManifestAuthor } from '#provenance/manifest-author.ts';
import { createFragmentReader, createOutputChecker } from '#provenance/official-reader.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { startAuthority } from '../provenance/time-stamp-authority.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';

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
  const [output, dataDir, path] = [join(folder, 'output'), join(folder, 'data'), join(folder, 'sound.wav')];
  mkdirSync(dataDir);
  writeFileSync(path, smallWav(dataBytes));
  const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
  const told: (InputPhase | 'awaits')[] = [];
  const context: InputContext = {
    signal: new AbortController().signal,
    scratch: new ScratchSpace({ dir: folder, dataDir }, key),
    progress: () => undefined,
    opened: () => undefined,
    reached: (phase) => {
      told.push(phase);
      reached?.(phase, output);
    },
    reserveOutputPath: () => Promise.resolve(),
    confirmLease: () => Promise.resolve(),
    awaitSignature: (sign) => {
      told.push('awaits');
      return sign();
    },
  };
  const policy = { roots: undefined, protectedPaths: [] };
  const limits = { maxFiles: 1000, maxBytes: 2 ** 30, maxDepth: 4 };
  const services: Omit<OperationServices, 'assets'> = {
    inputs: new InputResolver(
      { local_file_path: localFileOpener(policy) },
      { local_folder_path: localFolderOpener(policy, limits) },
    ),
    outputs: new LocalSink({ baseDir: output, dataDir }),
    author,
    manifestDefaults: { actions: [] },
    outputChecker: readBack ? createOutputChecker() : null,
    fragments: createFragmentReader(),
    fragmentChecks: 'all',
    trust: { current: NO_TRUST_LISTS },
  };
  if (!publication) {
    const input = { type: 'local_file_path', path } as const;
    const work = {
      ...key,
      identity: 'default',
      operation: 'c2pa-audio',
      input,
      output: null,
      params: undefined,
    } as const;
    return { output, told, outcome: signAudio.run(work, context, services as OperationServices) };
  }
  const input = { type: 'local_folder_path', path: makeFfmpegHls(makeFilm(folder), join(folder, 'hls')) } as const;
  const params = { playlist_pattern: '*.m3u8', init_pattern: 'init_*.mp4', frag_pattern: '*.m4s' };
  const work = { ...key, identity: 'default', operation: 'c2pa-fragmented', input, output: null, params } as const;
  return { output, told, outcome: signFragmented.run(work, context, services as OperationServices) };
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
