import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { commonFolder, signOperationOf } from '../../src/cli/find-inputs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';

describe('the folder of outputs beside their inputs', () => {
  test('is the one above a publication, and the one that is searched itself', () => {
    const above = temporaryFolder();
    const [films, news] = [join(above, 'films'), join(above, 'news')];
    for (const folder of [films, news]) mkdirSync(folder);
    writeFileSync(join(news, 'master.m3u8'), '#EXTM3U\n');
    const search = { isRecursive: true };
    assert.equal(commonFolder([films], search), films);
    assert.equal(commonFolder([films], { isRecursive: false }), above);
    assert.equal(commonFolder([join(films, 'a.mp4')], search), films);
    for (const path of [news, join(news, 'master.m3u8')]) assert.equal(commonFolder([path], search), above);
  });
});

test('a file whose bytes are of no format is taken for what its name says', async () => {
  const file = join(temporaryFolder(), 'a.mp3');
  writeFileSync(file, 'no music');
  assert.equal(await signOperationOf(file), 'c2pa-audio');
});

test('a file that cannot be read is refused as such, whatever its name is', async () => {
  const file = join(temporaryFolder(), 'a.mp3');
  writeFileSync(file, 'ID3');
  chmodSync(file, 0o000);
  await withoutPrivileges(() => assert.rejects(signOperationOf(file), { reason: 'SOURCE_NOT_PERMITTED' }));
});
