import assert from 'node:assert/strict';
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { readSignableFile } from '#formats/formats.ts';
import { openLocalFile } from '#inputs/local/local-file.ts';
import { describeIngredient } from '#operations/describe-ingredient.ts';
import type { InputOutcome, InputPhase } from '#operations/operation.ts';
import { signAudio, signVideo } from '#operations/registry.ts';
import { pinIfSigned } from '#operations/sign-file.ts';
import type { ManifestAuthor } from '#provenance/manifest-author.ts';
import { mediaFolder } from '../support/judges/file-judges.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { ffmpeg, sound } from '../support/media/media-files.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { runInput } from '../support/run-input.ts';

const folder = mediaFolder();
const author = testAuthor();
const anywhere = { roots: undefined, protectedPaths: [] };
const never = new AbortController().signal;

/** When something may be done to a file: before and after the SDK validates it, or at a phase. */
type Moment = 'validating' | 'validated' | InputPhase;

interface Wishes {
  readonly parent?: string;
  readonly at?: { readonly [At in Moment]?: () => void };
}

/** Signs a file as a worker does, into a folder of its own. */
async function sign(
  path: string,
  { parent, at }: Wishes = {},
): Promise<{ output: string; outcome: Promise<InputOutcome> }> {
  const own = join(folder, `signed-${signCount++}`);
  const during = (moment: Moment): void => at?.[moment]?.();
  const validating: ManifestAuthor = {
    async draft(request, signal) {
      during('validating');
      const draft = await author.draft(request, signal);
      during('validated');
      return draft;
    },
  };
  const params =
    parent === undefined ? undefined : { parent: { type: 'file', source: { type: 'local_file_path', path: parent } } };
  const asked = { input: { type: 'local_file_path', path }, params } as const;
  const worker = { context: { reached: during }, services: { author: validating } };
  const operation = /\.(mp4|mov)$/.test(path) ? signVideo : signAudio;
  return { output: join(own, 'output'), outcome: runInput(operation, asked, own, worker) };
}
let signCount = 0;

function scratchSpace(): ScratchSpace {
  return new ScratchSpace({ dir: folder, dataDir: folder }, { jobId: 'job', inputIndex: 0, attempt: 1 });
}

/** A file that was signed by the service, and where its media is for certain. */
async function signedFile(path: string): Promise<string> {
  const { output, outcome } = await sign(path);
  await outcome;
  const signed = join(output, readdirSync(output)[0] as string);
  // Whole seconds, to which a time can be set back exactly.
  utimesSync(signed, 1_700_000_000, 1_700_000_000);
  return signed;
}

/** Writes other bytes into the middle of a file, and sets its time of modification back. */
function alterInSecret(path: string): void {
  const { atime, mtime, size } = statSync(path);
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.from('ALTERED!'), 0, 8, Math.floor(size / 2));
  closeSync(file);
  utimesSync(path, atime, mtime);
}

function wav(name: string): string {
  writeFileSync(join(folder, name), smallWav(30_000));
  return join(folder, name);
}

const rawMovie = [
  '-f',
  'lavfi',
  '-i',
  'testsrc=size=640x480:rate=25:duration=1',
  '-c:v',
  'rawvideo',
  '-pix_fmt',
  'yuv420p',
];
const SOURCES: Readonly<Record<string, () => string>> = {
  'a WAV': () => wav('sound.wav'),
  'an MP3': () => made('sound.mp3', (name) => sound(folder, name)),
  'a FLAC': () => made('sound.flac', (name) => sound(folder, name)),
  'an M4A with a flat hash': () => made('sound.m4a', (name) => sound(folder, name)),
  'a large MOV with a Merkle tree': () =>
    made('raw.mov', (name) => ffmpeg(folder, name, ...rawMovie, '-vtag', 'yuv2', '-an', '-t', '2')),
};

function made(name: string, make: (name: string) => Buffer): string {
  make(name);
  return join(folder, name);
}

for (const [what, make] of Object.entries(SOURCES)) {
  for (const moment of ['validated', 'staged', 'signed'] as const) {
    test(`${what} that is altered in secret while it is signed (${moment}) is refused`, async () => {
      const path = await signedFile(make());
      const { output, outcome } = await sign(path, { at: { [moment]: () => alterInSecret(path) } });
      await assert.rejects(outcome, { reason: 'SOURCE_CHANGED' });
      assert.deepEqual(readdirSync(output), []);
    });
  }
}

test('a parent that is altered in secret before the SDK has read it is refused', async () => {
  const [source, parent] = [wav('plain.wav'), await signedFile(wav('parent.wav'))];
  const { outcome } = await sign(source, { parent, at: { validating: () => alterInSecret(parent) } });
  await assert.rejects(outcome, { reason: 'SOURCE_CHANGED' });
});

test('the SDK is led to the file that was opened, whatever its path leads to by then', async (t) => {
  const [path, scratch] = [await signedFile(wav('opened.wav')), scratchSpace()];
  const bytes = readFileSync(path);
  const source = await openLocalFile(path, 'opened.wav', anywhere, never);
  t.after(() => source.close());
  const { ingredient } = await describeIngredient(await readSignableFile(source, never), { scratch, signal: never });
  renameSync(path, `${path}.away`);
  writeFileSync(path, 'another');
  assert(ingredient.kind === 'file');
  assert.deepEqual(readFileSync(ingredient.path), bytes);
  await assert.rejects(async () => ingredient.checkUnchanged?.(never), { reason: 'SOURCE_CHANGED' });
});

test('a signed source is planned by the bytes that are validated and copied, not by what was read of it before', async () => {
  const scratch = scratchSpace();
  const [first, later] = [await signWav(author), await signWav(author, { title: 'a longer title' }, smallWav(9000))];
  const source = memorySource(first.bytes, 'source.wav');
  const file = await readSignableFile(source, never);
  const kept = await pinIfSigned(
    { ...file, source: memorySource(later.bytes, 'source.wav') },
    { scratch, signal: never },
  );
  assert.deepEqual(kept.layout, (await readSignableFile(memorySource(later.bytes, 'source.wav'), never)).layout);

  const unsigned = pinIfSigned({ ...file, source: memorySource(smallWav(), 'source.wav') }, { scratch, signal: never });
  await assert.rejects(unsigned, { reason: 'SOURCE_CHANGED' });
  await scratch.remove();
});

test('a signed file whose changes the file system does not tell is copied before it is validated', async (t) => {
  const [path, scratch] = [await signedFile(wav('shared.wav')), scratchSpace()];
  t.after(() => scratch.remove());
  const opened = await openLocalFile(path, 'shared.wav', anywhere, never);
  t.after(() => opened.close());
  const shared: ByteSource = {
    name: opened.name,
    sizeBytes: opened.sizeBytes,
    localPath: path,
    read: (target, offset, signal) => opened.read(target, offset, signal),
    pin: () => Promise.resolve(false),
    close: () => Promise.resolve(),
  };
  const { source } = await pinIfSigned(await readSignableFile(shared, never), { scratch, signal: never });
  const genuine = readFileSync(path);
  alterInSecret(path);
  assert.deepEqual(await readRange(source, 0, source.sizeBytes, never), genuine);
});
