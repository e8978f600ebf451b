import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import type { Verification } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';
import { isobmff, riff } from '#formats/formats.ts';
import { id3 } from '#formats/id3/id3.ts';
import { httpFileOpener } from '#inputs/http/http-file.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { verify } from '#operations/registry.ts';

import { frame, mpegFrames, tag, text as title } from '../formats/id3/tag-bytes.ts';
import { clientFor } from '../inputs/http-client-for-tests.ts';
import { filesWithXmp, xmpNaming } from '../provenance/files-with-xmp.ts';
import { startAuthority } from '../provenance/time-stamp-authority.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { plainParent, signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { box, FTYP, fullBox, trak, u32 } from '../support/media/movie-bytes.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { runInput } from '../support/run-input.ts';
import { sendFile, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Asked, verifyInput } from '../support/verification/verify-input.ts';

const folder = temporaryFolder();
let count = 0;

/** Verifies a file that lies in a folder of its own with others. */
async function verified(
  name: string,
  files: Readonly<Record<string, Uint8Array>>,
  asked?: Asked,
): Promise<Verification> {
  const home = writeFiles(join(folder, String(count++)), files);
  return (await verifyInput({ type: 'local_file_path', path: join(home, name) }, home, asked)).verification;
}

function flipped(bytes: Uint8Array, offset: number): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt8((changed[offset] as number) ^ 1, offset);
  return changed;
}

/** A manifest store for a sidecar, which binds all bytes of a file of any kind. */
function sidecarFor(bytes: Uint8Array): Promise<Buffer> {
  const hash = [...createHash('sha256').update(bytes).digest()];
  return makeManifest({ label: 'c2pa.hash.data', data: { exclusions: [], name: 'all', alg: 'sha256', hash, pad: [] } });
}

/** A picture of one grey pixel, with a manifest store (C2PA 2.2 §A.3.2: chunk `caBX`). */
function pngWith(store: Uint8Array | null): Buffer {
  const header = Buffer.from('00000001000000010800000000', 'hex');
  const manifest = store === null ? [] : [pngChunk('caBX', store)];
  const pixel = pngChunk('IDAT', deflateSync(Buffer.alloc(2)));
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([signature, pngChunk('IHDR', header), ...manifest, pixel, pngChunk('IEND', Buffer.alloc(0))]);
}

function pngChunk(type: string, data: Uint8Array): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type, 'latin1'), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}

describe('the verdict on a file', async () => {
  const signed = await signBytes(riff, smallWav());
  const text = Buffer.from('no media at all\n'.repeat(10));
  const sidecar = await sidecarFor(text);

  test('is that it is unchanged, with its signer, where nobody trusts that', async () => {
    const { state, manifests, codes, manifest_from: from } = await verified('a.wav', { 'a.wav': signed });
    assert.deepEqual([state, from, manifests.length], ['valid', 'embedded', 1]);
    assert.equal(manifests[0]?.signer?.algorithm, 'ES256');
    assert.deepEqual(
      manifests[0]?.actions.map(({ action }) => action),
      ['c2pa.created'],
    );
    const untrusted = codes.find(({ code }) => code === 'signingCredential.untrusted');
    assert.equal(untrusted?.kind, 'failure');
  });

  test('is that it was changed, where media or manifest were', async () => {
    const media = await verified('a.wav', { 'a.wav': flipped(signed, 1000) });
    assert.equal(media.state, 'invalid');
    assert(media.codes.some(({ code, kind }) => code === 'assertion.dataHash.mismatch' && kind === 'failure'));
    const inManifest = signed.indexOf('digitalCapture');
    assert(inManifest > 0);
    assert.equal((await verified('a.wav', { 'a.wav': flipped(signed, inManifest) })).state, 'invalid');
  });

  test('is invalid where a manifest is there that no reader can read', async () => {
    const at = signed.indexOf('jumdc2pa');
    assert(at > 0);
    const { state, codes } = await verified('a.wav', { 'a.wav': flipped(signed, at + 1) });
    assert.deepEqual([state, codes[0]?.code], ['invalid', 'general.error']);
  });

  test('is that there is no information, where there is none', async () => {
    const { state, codes, manifests } = await verified('a.wav', { 'a.wav': smallWav() });
    assert.deepEqual({ state, codes, manifests }, { state: 'none', codes: [], manifests: [] });
  });

  test('is reached with a sidecar next to it, whatever kind of file it is', async () => {
    const next = await verified('notes.txt', { 'notes.txt': text, 'notes.c2pa': sidecar });
    assert.deepEqual([next.state, next.manifest_from], ['valid', 'sidecar']);
    assert.match(next.summary, /is text, which may name other files/);
    assert.ok(next.codes.some(({ code, kind }) => code === 'com.attestream.file.text' && kind === 'informational'));
    const bytes = Buffer.from([0, 1, 2, 3]);
    const other = await verified('notes.bin', { 'notes.bin': bytes, 'notes.c2pa': await sidecarFor(bytes) });
    assert.doesNotMatch(other.summary, /other files/);
    const changed = await verified('notes.txt', { 'notes.txt': flipped(text, 5), 'notes.c2pa': sidecar });
    assert.equal(changed.state, 'invalid');
  });

  test('is invalid where players may read a list of other files between the tag and the sound', async () => {
    const list = Buffer.from('ffconcat version 1.0\nfile other.mov\n#');
    const input = Buffer.concat([tag(4, frame(4, 'TIT2', title('x'))), list, mpegFrames(40)]);
    const careless = {
      ...id3,
      planEmbedding: (layout: Parameters<typeof id3.planEmbedding>[0], size: number) =>
        id3.planEmbedding({ ...layout, startsLikeText: false }, size),
    };
    const verdict = await verified('a.mp3', { 'a.mp3': await signBytes(careless, input) });
    assert.equal(verdict.state, 'invalid');
    assert.match(verdict.summary, /^Players may read the file as text/);
    const codes = new Map(verdict.codes.map(({ code, kind }) => [code, kind]));
    assert.equal(codes.get('com.attestream.file.text'), 'failure');
    // The media are those that were signed.
    assert.equal(codes.get('assertion.dataHash.match'), 'success');
  });

  test('comes with a warning where a movie leads players to other files', async () => {
    const own = fullBox('url ', 0, Buffer.from('file:///media/other.mov\0'));
    // GStreamer posts it as a redirect where the movie has no header.
    const data = box('rdrf', u32(0), Buffer.from('url '), u32(10), Buffer.from('other.mp4\0'));
    const reference = box('rmra', box('rmda', data));
    for (const tables of [[trak({ dataReferences: [own] })], [trak(), reference]]) {
      const movie = Buffer.concat([FTYP, box('moov', ...tables), box('mdat', Buffer.alloc(8))]);
      const home = writeFiles(join(folder, String(count++)), { 'a.mp4': await signBytes(isobmff, movie) });
      const { warnings } = await verifyInput({ type: 'local_file_path', path: join(home, 'a.mp4') }, home);
      assert.deepEqual(
        warnings.map(({ reason }) => reason),
        ['MEDIA_IN_OTHER_FILES'],
      );
    }
  });

  test('says that a picture which is text may show other files', async () => {
    const start =
      '<svg xmlns="http://www.w3.org/2000/svg"><metadata><c2pa:manifest xmlns:c2pa="http://c2pa.org/manifest">';
    const end = '</c2pa:manifest></metadata><image href="other.png"/></svg>';
    const sizeBytes = 12_000;
    const exclusions = [{ start: start.length, length: (sizeBytes / 3) * 4 }];
    const hash = [...createHash('sha256').update(start).update(end).digest()];
    const data = { exclusions, name: 'all', alg: 'sha256', hash, pad: [] };
    const store = await makeManifest({ label: 'c2pa.hash.data', data }, sizeBytes);
    const { state, summary } = await verified('a.svg', {
      'a.svg': Buffer.from(start + store.toString('base64') + end),
    });
    assert.equal(state, 'valid');
    assert.match(summary, /The file is text, which may name other files: what these hold is not covered\./);
  });

  test('is not reached on a sidecar as if it were changed media', async () => {
    await assert.rejects(verified('notes.c2pa', { 'notes.txt': text, 'notes.c2pa': sidecar }), {
      reason: 'FORMAT_UNKNOWN',
    });
  });

  test('is that there is none, where a server refuses the name of a sidecar, in whatever way', async (t) => {
    for (const status of [400, 403, 404, 405, 451]) {
      const { base } = await serve(t, (request, response) =>
        request.url === '/a.ogg'
          ? sendFile(request, response, { content: Buffer.from('OggS\0') })
          : void response.writeHead(status).end(),
      );
      const inputs = new InputResolver({ remote_file_url: httpFileOpener(clientFor(t)) });
      const input = { type: 'remote_file_url', url: `${base}/a.ogg` } as const;
      const { verification } = await runInput(verify, { input }, join(folder, String(count++)), {
        services: { inputs },
      });
      assert.equal(verification.state, 'none', String(status));
    }
  });

  test('is that there is none, where the name of a sidecar would be longer than any', async () => {
    const name = 'a'.repeat(252);
    assert.equal((await verified(name, { [name]: smallWav() })).state, 'none');
  });

  test('is reached with a named sidecar that covers an earlier manifest in its file', async () => {
    const { bytes } = await signWav(testAuthor());
    const named = { 'a.wav': bytes, 'a.c2pa': await sidecarFor(bytes) };
    const home = writeFiles(join(folder, 'earlier'), named);
    const source = { type: 'local_file_path', path: join(home, 'a.c2pa') } as const;
    const params = { sidecars: [{ input_index: 0, source }] };
    const input = { type: 'local_file_path', path: join(home, 'a.wav') } as const;
    const { verification } = await verifyInput(input, folder, { params });
    assert.deepEqual([verification.state, verification.manifest_from], ['valid', 'sidecar']);
  });

  test('is reached with a sidecar that the request names', async () => {
    const named = writeFiles(join(folder, 'named'), { 'other.c2pa': sidecar });
    const source = { type: 'local_file_path', path: join(named, 'other.c2pa') } as const;
    const params = { sidecars: [{ input_index: 0, source }] };
    assert.equal((await verified('notes.txt', { 'notes.txt': text }, { params })).state, 'valid');
    assert.equal((await verified('a.wav', { 'a.wav': signed }, { params })).state, 'invalid');
    const absent = { ...source, path: join(named, 'absent.c2pa') };
    const failing = verified(
      'a.wav',
      { 'a.wav': signed },
      { params: { sidecars: [{ input_index: 0, source: absent }] } },
    );
    await assert.rejects(failing, { reason: 'SOURCE_NOT_FOUND', location: { field: 'params.sidecars[0].source' } });
  });

  test('is that there is none, of media and pictures that are not signed here', async () => {
    const packets = Buffer.alloc(3 * 188).map((_, index) => (index % 188 === 0 ? 0x47 : 0));
    const ogg = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(500)]);
    const [picture] = filesWithXmp('').filter(({ mediaType }) => mediaType === 'image/jpeg');
    const files = { 'a.ts': packets, 'a.ogg': ogg, 'a.jpg': picture?.bytes ?? ogg };
    for (const name of Object.keys(files)) assert.equal((await verified(name, files)).state, 'none', name);
  });

  test('is that it was changed, where the manifest of a picture cannot be read', async () => {
    const store = await sidecarFor(text);
    const claim = store.indexOf('claim_generator_info');
    const { state, codes } = await verified('a.png', { 'a.png': pngWith(flipped(store, claim - 1)) });
    assert.equal(state, 'invalid');
    assert(codes.some(({ code, explanation }) => code === 'general.error' && explanation.includes('claim')));
    assert.equal((await verified('a.png', { 'a.png': pngWith(null) })).state, 'none');
  });

  test('is that there is none where a file names one at a remote address, with a warning', async () => {
    for (const { name, bytes } of filesWithXmp(xmpNaming('https://media.example/a.c2pa'))) {
      const home = writeFiles(join(folder, String(count++)), { [name]: bytes });
      const { verification, warnings } = await verifyInput({ type: 'local_file_path', path: join(home, name) }, home);
      assert.deepEqual(
        [verification.state, warnings.map(({ reason }) => reason)],
        ['none', ['REMOTE_MANIFEST_NOT_FETCHED']],
        name,
      );
    }
  });

  test('is not given on what is no media, or damaged beyond reading', async () => {
    const cut = Buffer.from('ffd8ffe000104a464946', 'hex');
    for (const bytes of [text, cut]) {
      await assert.rejects(verified('notes.txt', { 'notes.txt': bytes }), (error) => {
        assert(error instanceof AppError && error.reason === 'FORMAT_UNKNOWN');
        // The remedy is about verifying, not about signing.
        assert.partialDeepStrictEqual(error.details, { operation: 'verify' });
        assert(error.message.includes('params.sidecars') && !error.message.includes('params.manifest'));
        return true;
      });
    }
    const beheaded = signed.subarray(0, 30);
    await assert.rejects(verified('a.wav', { 'a.wav': beheaded }), { code: 'PROCESSING_FAILED' });
  });

  test('is written in full where the request has an output', async () => {
    const home = writeFiles(join(folder, 'written'), { 'a.wav': signed });
    const input = { type: 'local_file_path', path: join(home, 'a.wav') } as const;
    const { outputPath, verification } = await verifyInput(input, home, { output: { type: 'local' } });
    assert.equal(outputPath, join(home, 'output/a_verification.json'));
    const report = JSON.parse(readFileSync(outputPath, 'utf8')) as Verification;
    assert.equal(report.state, verification.state);
    assert.notEqual(report.manifests[0]?.assertions[0]?.data, undefined);
  });
});

describe('a verification of a chain', () => {
  test('shows the time that an authority states, and who it is', async () => {
    const authority = await startAuthority();
    try {
      const author = testAuthor({ timeStamps: { urls: [authority.url], timeoutMs: 600_000, isRequired: true } });
      const { bytes } = await signWav(author);
      const { manifests, summary } = await verified('a.wav', { 'a.wav': bytes });
      const stamp = manifests[0]?.time_stamp;
      assert.equal(stamp?.trusted, false);
      assert.match(summary, / The time-stamp is of an authority on no trust list that this service knows: /);
      assert(Math.abs(Date.parse(stamp?.time ?? '') - Date.now()) < 60_000_000);
      assert.equal(typeof stamp?.authority, 'string');
    } finally {
      await authority.close();
    }
  });

  /** A parent that was altered before it was added. */
  async function alteredParent() {
    const { bytes } = await signWav(testAuthor());
    const path = join(writeFiles(join(folder, String(count++)), { 'parent.wav': flipped(bytes, 1000) }), 'parent.wav');
    return { kind: 'file', path, title: 'parent.wav', mediaType: 'audio/wav' } as const;
  }

  test('names every manifest, and what each signer found of its ingredients', async () => {
    const { bytes } = await signWav(testAuthor(), { origin: await alteredParent() });
    const { state, manifests } = await verified('a.wav', { 'a.wav': bytes });
    const [active, below] = manifests;
    assert.deepEqual([state, manifests.length], ['valid', 2]);
    assert.deepEqual(active?.ingredients[0], {
      title: 'parent.wav',
      media_type: 'audio/wav',
      relationship: 'parentOf',
      manifest: below?.label as string,
      state: 'invalid',
      failures: ['assertion.dataHash.mismatch'],
    });
  });

  test('names in its summary an ingredient that is not valid, wherever it is in the chain', async () => {
    const { bytes: child } = await signWav(testAuthor(), { origin: await alteredParent() });
    const path = join(writeFiles(join(folder, String(count++)), { 'child.wav': child }), 'child.wav');
    const origin = { kind: 'file', path, title: 'child.wav', mediaType: 'audio/wav' } as const;
    const { bytes: grandchild } = await signWav(testAuthor(), { origin });
    for (const bytes of [child, grandchild]) {
      const { state, summary } = await verified('a.wav', { 'a.wav': bytes });
      assert.deepEqual(
        [state, summary.includes('"parent.wav"'), summary.includes('child.wav')],
        ['valid', true, false],
      );
    }
  });

  test('names an ingredient that is not valid also where not all are listed', async () => {
    const components = Array.from({ length: 30 }, (_, index) => ({ ...plainParent, title: `take-${index}.wav` }));
    const { bytes } = await signWav(testAuthor(), { components: [...components, await alteredParent()] });
    const { summary, manifests } = await verified('a.wav', { 'a.wav': bytes });
    assert(summary.includes('"parent.wav"'));
    assert.equal(manifests[0]?.ingredients[0]?.title, 'parent.wav');
  });

  test('is bounded, whatever its author put into it', async () => {
    const markup = '<img src=x onerror=alert(1)>'.repeat(40);
    const components = Array.from({ length: 500 }, (_, index) => ({ ...plainParent, title: `${index} ${markup}` }));
    const assertions = [
      { label: 'com.example.large', data: 'x'.repeat(5_000_000) },
      ...Array.from({ length: 300 }, (_, index) => ({ label: `com.example.n${index}`, data: { markup } })),
    ];
    const { bytes } = await signWav(testAuthor(), { components, assertions });
    for (const [report, limit] of [
      ['summary', 48],
      ['detailed', 512],
    ] as const) {
      const verification = await verified('a.wav', { 'a.wav': bytes }, { params: { report } });
      const [active] = verification.manifests;
      assert.equal(verification.state, 'valid');
      assert(JSON.stringify(verification).length <= limit * 1024, report);
      assert.equal((active?.ingredients.length ?? 0) + (active?.omitted?.ingredients ?? 0), 501);
    }
  });
});
