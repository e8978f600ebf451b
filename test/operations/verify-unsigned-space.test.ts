import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as cborg from 'cborg';
import type { Verification } from '#contract/verification.ts';
import { c2paUuidBox } from '#formats/isobmff-boxes.ts';
import type { Rendition } from '#publications/media-part.ts';
import { readPublication } from '#publications/read-publication.ts';
import { box, C2PA_ID, fullBox, u32 } from '../support/media/movie-bytes.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { merkleBoxIn, topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Bytes of a publication that nobody signs, and boxes that lead players there.

const home = temporaryFolder();
const SEGMENTS = '-seg_duration 0.25 -use_timeline 1 -use_template 1 -hls_playlist 1';
const made = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash'), SEGMENTS));
const files = Object.fromEntries(Object.entries(made).map(([path, bytes]) => [path, Buffer.from(bytes)]));
const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
const { renditions } = await readPublication(folderOf(files), patterns, new AbortController().signal);
const [, audio] = renditions as [Rendition, Rendition];
const signed: Readonly<Record<string, Uint8Array>> = await signAsOthers(files, renditions, {});
let count = 0;

async function verified(changes: Readonly<Record<string, Uint8Array>>): Promise<Verification> {
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), { ...signed, ...changes });
  return (await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'))).verification;
}

/** The kinds of deviations of a publication that is invalid for them. */
async function deviations(changes: Readonly<Record<string, Uint8Array>>): Promise<Record<string, number> | undefined> {
  const { state, publication } = await verified(changes);
  assert.equal(state, 'invalid');
  return publication?.deviations;
}

const bytesOf = (path: string): Buffer => Buffer.from(signed[path] as Uint8Array);

describe('a publication is not as it was signed', () => {
  test('but this one is', async () => {
    assert.equal((await verified({})).state, 'valid');
  });

  test('where a Merkle box holds digests that its proof does not need, or stands there twice', async () => {
    const [, victim] = audio.fragments.map(({ path }) => path) as [string, string];
    const own = merkleBoxIn(bytesOf(victim));
    const needless = c2paUuidBox('merkle', cborg.encode({ ...own, hashes: [new Uint8Array(32)] }));
    const replaced = topBoxesOf(bytesOf(victim)).map(({ type, bytes }) => (type === 'uuid' ? needless : bytes));
    assert.deepEqual(await deviations({ [victim]: Buffer.concat(replaced) }), { altered: 1 });
    const twice = Buffer.concat([bytesOf(victim), c2paUuidBox('merkle', cborg.encode(own))]);
    assert.deepEqual(await deviations({ [victim]: twice }), { altered: 1 });
  });

  for (const [what, at] of [
    ['version', 16],
    ['flags', 19],
    ['purpose', 20],
  ] as const) {
    test(`where C2PA boxes have another ${what}`, async () => {
      const changed = (path: string): Record<string, Buffer> => {
        const bytes = bytesOf(path);
        const position = bytes.indexOf(C2PA_ID) + at;
        bytes.writeUInt8(bytes.readUInt8(position) ^ 1, position);
        return { [path]: bytes };
      };
      const [, victim] = audio.fragments.map(({ path }) => path) as [string, string];
      assert.deepEqual(await deviations(changed(victim)), { altered: 1 });
      const inits = Object.assign({}, ...renditions.map(({ init }) => changed(init.path)));
      assert.deepEqual(await deviations(inits), { altered: 2 });
    });
  }

  test('where samples were said to lie behind their fragment before it was signed, or by a table in another box', async () => {
    const [, victim] = audio.fragments.map(({ path }) => path) as [string, string];
    const source = Buffer.from(files[victim] as Uint8Array);
    const run = source.indexOf('trun', 0, 'latin1');
    const behind = Buffer.from(source);
    behind.writeInt32BE(source.length + 1000, run + 12);
    const loose = Buffer.concat([source, box('wave', fullBox('trun', 1, u32(1, 0)))]);
    // Leads to how samples are encrypted, behind the end of the file.
    const where = fullBox('saio', 0, u32(1, source.length + 1000));
    const encrypted = Buffer.concat(
      topBoxesOf(source).map(({ type, bytes }) => {
        if (type !== 'moof') return bytes;
        const moved = Buffer.from(bytes);
        const dataOffsetAt = bytes.indexOf('trun', 0, 'latin1') + 12;
        moved.writeInt32BE(bytes.readInt32BE(dataOffsetAt) + where.length, dataOffsetAt);
        const trafAt = bytes.indexOf('traf', 0, 'latin1') - 4;
        return box('moof', moved.subarray(8, trafAt), box('traf', moved.subarray(trafAt + 8), where));
      }),
    );
    for (const hostile of [behind, loose, encrypted]) {
      const theirs = await signAsOthers({ ...files, [victim]: hostile }, renditions, {});
      assert.deepEqual(await deviations(theirs), { altered: 1 });
    }
  });

  test('where an init segment leads players to samples', async () => {
    const init = files[audio.init.path] as Buffer;
    const loose = Buffer.concat([init, box('wave', box('stbl', fullBox('stco', 0, u32(1, 0))))]);
    const theirs = await signAsOthers({ ...files, [audio.init.path]: loose }, renditions, {});
    assert.equal((await verified(theirs)).state, 'invalid');
  });

  test('where a header of the signature, which that does not cover, holds something else', async () => {
    const inits = Object.fromEntries(
      renditions.map(({ init: { path } }) => {
        const changed = Buffer.from(bytesOf(path));
        const at = changed.indexOf(Buffer.from('63706164', 'hex'));
        // "pad" becomes "rVals", of as many bytes together.
        const lengthBytes = 1 << ((changed[at + 4] as number) - 0x58);
        const sizeBytes = changed.readUIntBE(at + 5, lengthBytes);
        Buffer.from('657256616c73', 'hex').copy(changed, at);
        changed[at + 6] = 0x59;
        changed.writeUInt16BE(sizeBytes + lengthBytes - 4, at + 7);
        return [path, changed];
      }),
    );
    assert.equal((await verified(inits)).state, 'invalid');
  });
});
