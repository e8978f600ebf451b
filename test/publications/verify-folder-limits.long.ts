import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { exclusion } from '#formats/isobmff/bmff-hash.ts';
import { c2paUuidBox } from '#formats/isobmff-boxes.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import type { Rendition } from '#publications/media-part.ts';
import { readPublication } from '#publications/read-publication.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { type OtherTool, signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Asked, verifyInput } from '../support/verification/verify-input.ts';

const { signal } = new AbortController();
const home = temporaryFolder();
type Files = Record<string, Buffer>;

/** DASH and HLS over the same fragments of a second each, unsigned: a rendition of pictures, and one of sound. */
const files: Files = Object.fromEntries(
  Object.entries(filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')))).map(([path, bytes]) => [
    path,
    Buffer.from(bytes),
  ]),
);
let count = 0;

async function renditionsOf(publication: Files, playlist: string, frag = '*chunk*'): Promise<readonly Rendition[]> {
  const patterns = { playlist, init: '*init*', frag };
  return (await readPublication(folderOf(publication), patterns, signal)).renditions;
}

const renditions = await renditionsOf(files, '*.mpd');
const [video, audio] = renditions as [Rendition, Rendition];

async function verified(publication: Files, asked?: Asked): Promise<Verification> {
  const place = join(home, `case-${count++}`);
  const input = { type: 'local_folder_path', path: writeFiles(join(place, 'show'), publication) } as const;
  try {
    return (await verifyInput(input, place, asked)).verification;
  } finally {
    // Hundreds of megabytes: most of them have not been written to the disk yet.
    rmSync(place, { recursive: true });
  }
}

/** The largest part that the official reader is given has 64 MiB. */
function tooLarge(part: Buffer | undefined): Buffer {
  const free = Buffer.alloc(65 * 1024 * 1024);
  free.writeUInt32BE(free.length, 0);
  free.write('free', 4, 'latin1');
  return Buffer.concat([part as Buffer, free]);
}

function signedWithLarge(paths: readonly string[], tool: OtherTool): Promise<Files> {
  const large = Object.fromEntries(paths.map((path) => [path, tooLarge(files[path])]));
  return signAsOthers({ ...files, ...large }, renditions, tool);
}

describe('a publication with a fragment that is too large for the official reader', () => {
  test('is described as others are', async () => {
    const [first] = video.fragments;
    const signed = await signedWithLarge([first?.path as string], { levels: 1 });
    const { state, summary, manifests, publication } = await verified(signed);
    assert.equal(state, 'valid');
    assert.match(summary, /"Attestream tests"/);
    assert.equal(manifests[0]?.signer?.organization, 'Attestream tests');
    const total = video.fragments.length + audio.fragments.length;
    assert.deepEqual([publication?.intact, publication?.read_officially], [total, total - 1]);
  });
});

function withFlippedEnd(part: Buffer): Buffer {
  const changed = Buffer.from(part);
  changed.writeUInt8(changed.readUInt8(changed.length - 9) ^ 1, changed.length - 9);
  return changed;
}

function codesIn({ codes }: Verification): string[] {
  return codes.map(({ code, kind, count: often }) => `${kind} ${code} ${often}`).sort();
}

/** HLS of one rendition with two fragments: as they are, or too large for the official reader. */
async function ofTwo(tool: OtherTool, size: (part: Buffer | undefined) => Buffer = tooLarge): Promise<Files> {
  const [first, second] = video.fragments.map(({ path }) => files[path]);
  const list = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:1,\na.m4s\n#EXTINF:1,\nb.m4s\n';
  const unsigned: Files = {
    'index.m3u8': Buffer.from(`${list}#EXT-X-ENDLIST\n`),
    'init.mp4': files[video.init.path] as Buffer,
    'a.m4s': size(first),
    'b.m4s': size(second),
  };
  return signAsOthers(unsigned, await renditionsOf(unsigned, '*.m3u8', '*.m4s'), tool);
}

describe('a publication of which every fragment is too large for the official reader', async () => {
  const identity = await testIdentity({ intermediate: true });
  const lists = writeFiles(join(home, 'lists'), { 'list.pem': pemOf(identity.chain.at(-1) as Buffer) });
  const trust = { anchors: [lists], tsa_anchors: [] };
  const signed = await ofTwo({ identity });

  test('has the verdict of one with small fragments, and says that none was read', async () => {
    const small = await ofTwo({ identity }, (part) => part as Buffer);
    for (const asked of [{}, { trust, params: { depth: 'full' } }] as const) {
      const [large, usual] = [await verified(signed, asked), await verified(small, asked)];
      assert.equal(large.state, 'trust' in asked ? 'trusted' : 'valid');
      assert.equal(large.state, usual.state);
      assert.deepEqual(codesIn(large), codesIn(usual));
      assert.deepEqual(large.manifests[0]?.signer, usual.manifests[0]?.signer);
      const { intact, read_officially, manifests_read_alone } = large.publication ?? {};
      assert.deepEqual([intact, read_officially, manifests_read_alone], [2, 0, 1]);
      assert.equal(usual.publication?.manifests_read_alone, undefined);
      assert.notEqual(large.summary, usual.summary);
    }
  });

  test('is invalid where a fragment is altered, missing or swapped, or its init segment altered', async () => {
    const [a, b] = [signed['a.m4s'], signed['b.m4s']] as [Buffer, Buffer];
    const altered = Buffer.from(a);
    altered.writeUInt8(1, 65 * 1024 * 1024);
    const { 'a.m4s': _removed, ...rest } = signed;
    const cases: [Files, string][] = [
      [{ ...signed, 'a.m4s': altered }, 'altered'],
      [rest, 'missing'],
      [{ ...signed, 'a.m4s': b, 'b.m4s': a }, 'swapped'],
      [{ ...signed, 'init.mp4': withFlippedEnd(signed['init.mp4'] as Buffer) }, 'altered'],
    ];
    for (const [publication, kind] of cases) {
      const { state, publication: compared, codes, manifests } = await verified(publication, { trust });
      assert.deepEqual([state, compared?.first[0]?.kind], ['invalid', kind]);
      assert(!codes.some(({ code }) => code === 'assertion.bmffHash.match'));
      assert.equal(manifests[0]?.signer?.organization, 'Attestream tests');
    }
  });

  test('is invalid where its signature is not that of its manifest', async () => {
    const init = Buffer.from(signed['init.mp4'] as Buffer);
    init.write('T', init.indexOf('dc:title') + 'dc:title'.length + 1);
    const { state, publication, codes } = await verified({ ...signed, 'init.mp4': init });
    assert.deepEqual([state, publication?.deviations], ['invalid', {}]);
    assert(codes.some(({ code, kind }) => kind === 'failure' && code.startsWith('claimSignature.')));
  });

  test('is invalid where neither its init segment nor any fragment is what the manifest binds', async () => {
    const init = withFlippedEnd(signed['init.mp4'] as Buffer);
    const [first, second] = video.fragments.map(({ path }) => tooLarge(files[path]));
    const foreign = { ...signed, 'init.mp4': init, 'a.m4s': first as Buffer, 'b.m4s': second as Buffer };
    assert.equal((await verified(foreign)).state, 'invalid');
  });

  test('is refused where its binding can be judged by the official reader only', async () => {
    const signed = await ofTwo({ exclusions: [exclusion('/moof/none')] });
    await assert.rejects(verified(signed), { reason: 'FRAGMENTS_TOO_LARGE' });
  });
});

describe('fragments that are too large for the official reader are not taken for intact', () => {
  const [path] = video.fragments.map((part) => part.path) as [string];
  const large = tooLarge(files[path]);

  test('where the manifest binds neither them nor their init segment', async () => {
    const signed = await signAsOthers(files, renditions, {});
    const foreign = Object.fromEntries(video.fragments.map((part) => [part.path, large]));
    const init = { [video.init.path]: withFlippedEnd(signed[video.init.path] as Buffer) };
    const { state, publication } = await verified({ ...signed, ...foreign, ...init });
    assert.equal(state, 'invalid');
    assert.deepEqual(publication?.deviations, { altered: 1, added: video.fragments.length });
    assert.equal(publication?.first[0]?.file, video.init.path);
  });

  test('where the official reader alone could tell', async () => {
    const signed = await signAsOthers(files, renditions, { exclusions: [exclusion('/moof/none')] });
    assert.equal((await verified(signed)).state, 'valid');
    await assert.rejects(verified({ ...signed, [path]: large }), { reason: 'FRAGMENTS_TOO_LARGE' });
  });
});

/** A number of copies of the rendition of sound, which differ in their fragments. */
function copies(number: number): Files {
  const copied: Files = {};
  const lines = ['#EXTM3U', '#EXT-X-VERSION:7'];
  const media = Array.from({ length: number }, (_, rendition) => {
    lines.push(`#EXT-X-STREAM-INF:BANDWIDTH=${rendition + 1}`, `${rendition}/index.m3u8`);
    copied[`${rendition}/init.mp4`] = files[audio.init.path] as Buffer;
    const chunk = Buffer.from(files[audio.fragments[0]?.path as string] as Buffer);
    chunk.writeUInt8(rendition, chunk.length - 1);
    copied[`${rendition}/chunk.m4s`] = chunk;
    return '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:1,\nchunk.m4s\n#EXT-X-ENDLIST\n';
  });
  for (const [rendition, text] of media.entries()) copied[`${rendition}/index.m3u8`] = Buffer.from(text);
  return { ...copied, 'master.m3u8': Buffer.from(`${lines.join('\n')}\n`) };
}

test('a publication whose many renditions carry a manifest each is intact', async () => {
  const unsigned = copies(20);
  const signed = await signAsOthers(unsigned, await renditionsOf(unsigned, '*.m3u8'), { manifestEach: true });
  const { state, publication } = await verified(signed);
  assert.deepEqual([state, publication?.deviations, publication?.intact], ['valid', {}, 20]);
});

test('a publication with more bytes of manifests than are read is refused, and not called unsigned', async () => {
  const withManifest = (path: string, filling: number): Buffer =>
    Buffer.concat([files[path] as Buffer, c2paUuidBox('manifest', Buffer.alloc(40 * 1024 * 1024, filling))]);
  const inits = {
    [video.init.path]: withManifest(video.init.path, 254),
    [audio.init.path]: withManifest(audio.init.path, 255),
  };
  await assert.rejects(verified({ ...files, ...inits }), { reason: 'PUBLICATION_TOO_LARGE' });
});
