import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { readPublication } from '#publications/read-publication.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

type Files = Readonly<Record<string, Uint8Array>>;

const home = temporaryFolder();
const dash = makeFfmpegDash(makeFilm(home), join(home, 'dash'), '-seg_duration 0.25 -use_template 1 -hls_playlist 1');
const { ['manifest.mpd']: _, ...found } = filesAt(dash);
const files = Object.fromEntries(Object.entries(found).map(([path, bytes]) => [path, Buffer.from(bytes)]));
const patterns = { playlist: '*.m3u8', init: '*init*', frag: '*chunk*' };
const { renditions } = await readPublication(folderOf(files), patterns, new AbortController().signal);
const signed: Files = await signAsOthers(files, renditions, {});
const PLAYLIST = 'media_0.m3u8';
let count = 0;

async function verified(changes: Files): Promise<Verification> {
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), { ...signed, ...changes });
  return (await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'))).verification;
}

test('a publication is valid as it was signed', async () => {
  assert.equal((await verified({})).state, 'valid');
});

describe('a publication is invalid whose manifests are not of the one shape that every reader reads alike:', () => {
  /** All init segments with another label, as long as before, in a description box. */
  function relabelled(label: string, other: string): Files {
    const changed = renditions.map(({ init: { path } }) => {
      const bytes = Buffer.from(signed[path] as Uint8Array);
      const at = bytes.indexOf(`\x03${label}\0`, 0, 'latin1');
      assert.ok(at > 0 && label.length === other.length);
      bytes.write(other, at + 1, 'latin1');
      return [path, bytes];
    });
    return Object.fromEntries(changed);
  }

  for (const [label, other] of [
    ['c2pa.assertions', 'c2pa.assertionz'],
    ['c2pa.signature', 'c2pa.signaturf'],
    ['c2pa.claim.v2', 'c2pa.claim.v3'],
  ] as const) {
    test(`"${label}" was renamed`, async () => {
      assert.equal((await verified(relabelled(label, other))).state, 'invalid');
      const playlist = Buffer.from(signed[PLAYLIST] as Uint8Array).toString();
      const cutShort = Buffer.from(playlist.slice(0, playlist.lastIndexOf('#EXTINF')).concat('#EXT-X-ENDLIST\n'));
      assert.ok(cutShort.length < playlist.length);
      assert.equal((await verified({ ...relabelled(label, other), [PLAYLIST]: cutShort })).state, 'invalid');
    });
  }
});
