import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Reader } from '@contentauth/c2pa-node';
import { AppError } from '#errors/app-error.ts';
import { riff } from '#formats/formats.ts';
import type { InputPhase } from '#operations/operation.ts';
import { blobOf, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { frame, mpegFrames, tag, text } from '../formats/id3/tag-bytes.ts';
import { mediaFolder, signBytes } from '../support/judges/file-judges.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { LINKED_CHAPTERS, matroska } from '../support/media/ebml-bytes.ts';
import { ffmpeg } from '../support/media/media-files.ts';
import { signWithSidecar } from '../support/sidecars/sign-with-sidecar.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

const folder = mediaFolder();
let count = 0;

/** A new folder with a source in it. */
function homeWith(name: string, bytes: Uint8Array): { home: string; source: string; output: string } {
  const home = join(folder, `home-${count++}`);
  mkdirSync(home);
  writeFileSync(join(home, name), bytes);
  return { home, source: join(home, name), output: join(home, 'output') };
}

interface ShownManifest {
  readonly title: string;
  readonly ingredients: readonly { readonly title: string; readonly format?: string; readonly relationship: string }[];
  readonly assertions: readonly { readonly label: string; readonly data: unknown }[];
}

/** Returns the report of the native reader on a file with its sidecar. */
async function judged(
  file: string,
  sidecar: string,
  mimeType = 'application/octet-stream',
): Promise<ShownManifest & { readonly state: string }> {
  const settings = { verify: { remote_manifest_fetch: false } };
  const reader = await Reader.fromManifestDataAndAsset(readFileSync(sidecar), { path: file, mimeType }, settings);
  const report = reader.json() as unknown as {
    validation_state: string;
    active_manifest: string;
    manifests: Record<string, ShownManifest>;
  };
  return { state: report.validation_state, ...(report.manifests[report.active_manifest] as ShownManifest) };
}

/** Returns the codes of the stricter reader for a manifest store; it takes no asset beside it, and so misses the bytes that are hashed. */
async function statusesInWasm(sidecar: string): Promise<unknown[]> {
  const WasmReader = await wasmReader();
  const reader = await WasmReader.fromBlob('application/c2pa', blobOf(readFileSync(sidecar)));
  return JSON.parse(reader.json()).validation_status.map(({ code }: { code: string }) => code);
}

const film = ['-f', 'lavfi', '-i', 'testsrc=size=128x72:rate=25:duration=1', '-f', 'lavfi', '-i', 'sine=duration=1'];

/** RF64 with its sizes in a ds64 chunk (EBU Tech 3306). */
function rf64(): Buffer {
  const wav = smallWav();
  const ds64 = Buffer.alloc(36);
  ds64.write('ds64', 0, 'latin1');
  ds64.writeUInt32LE(28, 4);
  ds64.writeBigUInt64LE(BigInt(wav.length + 28), 8);
  ds64.writeBigUInt64LE(BigInt(wav.length - 44), 16);
  const file = Buffer.concat([wav.subarray(0, 12), ds64, wav.subarray(12)]);
  file.write('RF64', 0, 'latin1');
  file.writeUInt32LE(0xffffffff, 4);
  file.writeUInt32LE(0xffffffff, 12 + 36 + 24 + 4);
  return file;
}

const SOURCES: Readonly<Record<string, { mediaType: string; make: (name: string) => Uint8Array }>> = {
  'film.mkv': { mediaType: 'video/matroska', make: (name) => ffmpeg(folder, name, ...film) },
  'film.webm': { mediaType: 'video/webm', make: (name) => ffmpeg(folder, name, ...film) },
  'film.mxf': {
    mediaType: 'application/mxf',
    make: (name) => ffmpeg(folder, name, ...film, '-c:v', 'mpeg2video', '-ar', '48000'),
  },
  'film.ts': { mediaType: 'video/mp2t', make: (name) => ffmpeg(folder, name, ...film) },
  'film.mp4': { mediaType: 'video/mp4', make: (name) => ffmpeg(folder, name, ...film) },
  'film.avi': { mediaType: 'video/x-msvideo', make: (name) => ffmpeg(folder, name, ...film) },
  'sound.aiff': {
    mediaType: 'audio/aiff',
    make: (name) => ffmpeg(folder, name, '-f', 'lavfi', '-i', 'sine=duration=1'),
  },
  'sound.ogg': {
    mediaType: 'application/ogg',
    make: (name) => ffmpeg(folder, name, '-f', 'lavfi', '-i', 'sine=duration=1'),
  },
  'sound.wav': { mediaType: 'audio/wav', make: () => smallWav() },
  'large.wav': { mediaType: 'audio/wav', make: rf64 },
  'cut.mp4': { mediaType: 'video/mp4', make: (name) => ffmpeg(folder, name, ...film).subarray(0, 5000) },
  'picture.png': {
    mediaType: 'image/png',
    make: (name) => ffmpeg(folder, name, '-f', 'lavfi', '-i', 'testsrc=size=64x64:duration=1', '-frames:v', '1'),
  },
  'notes.unknown': { mediaType: 'application/octet-stream', make: () => Buffer.from('\x01\x02 no container at all') },
  'no-extension': { mediaType: 'application/octet-stream', make: () => Buffer.from([0]) },
};

test('a sidecar takes the place of its own file’s, and not of that of another file', async () => {
  const { home, source, output } = homeWith('sound.wav', smallWav());
  const other = join(home, 'sound.bin');
  writeFileSync(other, Buffer.from([1, 2, 3]));
  const { outputPath = '', sidecarPath = '' } = await signWithSidecar(source, home);
  await assert.rejects(signWithSidecar(other, home), { reason: 'SIDECAR_OF_OTHER_FILE' });
  assert.deepEqual(readdirSync(output).sort(), ['sound_c2pa.c2pa', 'sound_c2pa.wav']);
  assert.equal((await judged(outputPath, sidecarPath)).state, 'Valid');
  await signWithSidecar(source, home);
  rmSync(outputPath);
  const replaced = await signWithSidecar(other, home);
  assert.equal((await judged(replaced.outputPath ?? '', replaced.sidecarPath ?? '')).state, 'Valid');
});

describe('a sidecar', () => {
  for (const [name, { mediaType, make }] of Object.entries(SOURCES)) {
    test(`for ${name} is valid with an unchanged copy of it, and says that it is ${mediaType}`, async () => {
      const { home, source, output } = homeWith(name, make(name));
      const { outputPath, sidecarPath } = await signWithSidecar(source, home);
      const stem = name.replace(/\.\w+$/, '');
      const extension = name.slice(stem.length);
      assert.deepEqual(
        [outputPath, sidecarPath],
        [join(output, `${stem}_c2pa${extension}`), join(output, `${stem}_c2pa.c2pa`)],
      );
      assert.deepEqual(readFileSync(outputPath), readFileSync(source));
      assert.deepEqual(readdirSync(output).length, 2);
      const { state, ingredients } = await judged(outputPath, sidecarPath ?? '', mediaType);
      assert.deepEqual([state, ingredients[0]?.format], ['Valid', mediaType]);
      const { verification } = await verifyInput({ type: 'local_file_path', path: outputPath }, home);
      assert.deepEqual([verification.state, verification.manifest_from], ['valid', 'sidecar']);
    });
  }

  test('is sound to the stricter reader, apart from the file that it cannot be given', async () => {
    const { home, source } = homeWith('film.bin', Buffer.alloc(5000, 7));
    const { sidecarPath = '' } = await signWithSidecar(source, home);
    const statuses = await statusesInWasm(sidecarPath);
    assert.deepEqual(statuses, ['signingCredential.untrusted', 'assertion.dataHash.mismatch']);
  });

  test('is delivered alone under the name that readers look for next to the source', async () => {
    const { home, source, output } = homeWith('film.take 2.mkv', Buffer.alloc(3_000_000, 7));
    const outcome = await signWithSidecar(source, home, { params: { copy_source: false } });
    assert.deepEqual(readdirSync(output), ['film.take 2.c2pa']);
    const sidecar = join(output, 'film.take 2.c2pa');
    assert.deepEqual([outcome.outputPath, outcome.sidecarPath], [sidecar, sidecar]);
    assert.equal((await judged(source, sidecar)).state, 'Valid');
    writeFileSync(source, Buffer.alloc(3_000_000, 8));
    assert.equal((await judged(source, sidecar)).state, 'Invalid');
  });

  test('has the parent and the assertions of the request', async () => {
    const { home, source } = homeWith('film.mkv', Buffer.alloc(1000, 7));
    const parent = join(home, 'parent.wav');
    writeFileSync(parent, await signBytes(riff, smallWav()));
    const params = {
      parent: { type: 'file', source: { type: 'local_file_path', path: parent } },
      assertions: [{ label: 'com.example.review', data: { approved: true } }],
    } as const;
    const {
      outputPath,
      sidecarPath = '',
      warnings,
    } = await signWithSidecar(source, home, {
      params: { ...params, assertions: [...params.assertions] },
    });
    const { state, ingredients, assertions } = await judged(outputPath, sidecarPath);
    assert.deepEqual([state, warnings], ['Valid', []]);
    assert.deepEqual(
      ingredients.map(({ title, relationship }) => [title, relationship]),
      [['parent.wav', 'parentOf']],
    );
    assert.deepEqual(assertions.find(({ label }) => label === 'com.example.review')?.data, { approved: true });
  });

  test('replaces the one of an earlier signing', async () => {
    const { home, source, output } = homeWith('film.mkv', Buffer.alloc(1000, 7));
    await signWithSidecar(source, home);
    writeFileSync(source, Buffer.alloc(900, 8));
    const { outputPath, sidecarPath = '' } = await signWithSidecar(source, home);
    assert.deepEqual(readdirSync(output).length, 2);
    assert.equal((await judged(outputPath, sidecarPath)).state, 'Valid');
  });
});

describe('nothing is delivered', () => {
  for (const copies of [true, false]) {
    const what = copies ? 'with a copy' : 'alone';
    for (const phase of ['staged', 'copied', 'signed', 'sealed', 'verified'] as const) {
      test(`of a sidecar ${what} for a source that is replaced when it is ${phase}`, async () => {
        const { home, source, output } = homeWith('film.mkv', Buffer.alloc(500_000, 7));
        const reached = (at: InputPhase): void => {
          if (at !== phase) return;
          writeFileSync(`${source}.new`, Buffer.alloc(500_000, 8));
          renameSync(`${source}.new`, source);
        };
        const signing = signWithSidecar(source, home, { params: { copy_source: copies }, reached });
        await assert.rejects(signing, { reason: 'SOURCE_CHANGED' });
        assert.deepEqual(existsSync(output) ? readdirSync(output) : [], []);
      });
    }

    test(`of a sidecar ${what} that the reader refuses, or whose lease is lost`, async () => {
      const { home, source, output } = homeWith('film.mkv', Buffer.alloc(500_000, 7));
      const params = { copy_source: copies };
      const refused = new AppError('READ_BACK_FAILED', { codes: ['claimSignature.mismatch'] });
      const outputChecker = () => Promise.reject(refused);
      await assert.rejects(signWithSidecar(source, home, { params, outputChecker }), { reason: 'READ_BACK_FAILED' });
      const lost = new Error('the lease was lost');
      const confirmLease = () => Promise.reject(lost);
      await assert.rejects(signWithSidecar(source, home, { params, confirmLease }), lost);
      assert.deepEqual(readdirSync(output), []);
    });
  }

  test('for a file that only its bytes tell to be another', async () => {
    const { home, source, output } = homeWith('film.mkv', Buffer.alloc(500_000, 7));
    const mismatch = new AppError('READ_BACK_FAILED', { codes: ['assertion.dataHash.mismatch'] });
    const outputChecker = () => Promise.reject(mismatch);
    const params = { copy_source: false };
    await assert.rejects(signWithSidecar(source, home, { params, outputChecker }), { reason: 'SOURCE_CHANGED' });
    assert.deepEqual(readdirSync(output), []);
  });

  test('for a source that carries a manifest, or is named like one', async () => {
    const wav = homeWith('signed.wav', await signBytes(riff, smallWav()));
    await assert.rejects(signWithSidecar(wav.source, wav.home), { reason: 'SIDECAR_SOURCE_SIGNED' });
    const named = homeWith('film.C2PA', smallWav());
    await assert.rejects(signWithSidecar(named.source, named.home), { reason: 'SIDECAR_NAME_TAKEN' });
    for (const { output } of [wav, named]) assert(!existsSync(output));
  });
});

test('a text gets no sidecar, whatever its name: players may read it as a list of other files', async () => {
  for (const [name, content] of Object.entries({
    'film.mkv': 'ffconcat version 1.0\nfile other.mov\n',
    'film.ogg': 'ffconcat version 1.0\nfile other.mov\n#\0',
    'film.m3u8': '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n',
    'film.ttml': '\ufeff<tt/>',
    'film.mpd': '<!--é--><MPD/>',
  })) {
    const { home, source, output } = homeWith(name, Buffer.from(content));
    await assert.rejects(signWithSidecar(source, home), { reason: 'SIDECAR_SOURCE_TEXT' });
    assert.deepEqual(existsSync(output) ? readdirSync(output) : [], []);
  }
  const mpeg = homeWith('film.mp3', Buffer.concat([Buffer.from('#EXTM3U\n#EXT-X-TARGETDURATION:1\n'), mpegFrames(8)]));
  await assert.rejects(signWithSidecar(mpeg.source, mpeg.home), { reason: 'SIDECAR_SOURCE_TEXT' });
  const tagged = homeWith('film.mkv', Buffer.concat([tag(4, frame(4, 'TIT2', text('x'))), Buffer.from('ffconcat\0')]));
  await assert.rejects(signWithSidecar(tagged.source, tagged.home), { reason: 'SIDECAR_SOURCE_TEXT' });
});

test('a Matroska file that links to others is signed with a warning, and its verdict says what is not covered', async () => {
  const { home, source } = homeWith('film.mkv', matroska(LINKED_CHAPTERS));
  const { outputPath, warnings } = await signWithSidecar(source, home);
  assert.ok(warnings?.some(({ reason }) => reason === 'MEDIA_IN_OTHER_FILES'));
  const found = await verifyInput({ type: 'local_file_path', path: outputPath as string }, home);
  assert.deepEqual(
    found.warnings?.map(({ reason }) => reason),
    ['MEDIA_IN_OTHER_FILES'],
  );
  const { state, summary, codes } = found.verification;
  assert.equal(state, 'valid');
  assert.match(summary, /links to segments of other files, which some players play: what these hold is not covered\./);
  assert.ok(codes.some(({ code, kind }) => code === 'com.attestream.file.links' && kind === 'informational'));
});
