import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import type { Files } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { testKills } from './kill-at-phase.ts';
import { KilledService } from './killed-service.ts';

for (const params of [{}, { manifest: 'sidecar' }, { manifest: 'sidecar', copy_source: false }]) {
  const title = `A file that was published when the service was killed is not signed again with other bytes ${JSON.stringify(params)}`;
  test(title, async (t) => {
    const folder = temporaryFolder();
    const path = join(folder, 'killed-when-delivered.wav');
    writeFileSync(path, smallWav());
    const service = new KilledService({ folder: join(folder, 'service') });
    t.after(() => service.stop());
    const output = join(folder, 'service/output');
    let published: Files = {};
    const body = { inputs: [{ type: 'local_file_path', path }], params };
    const jobId = await service.killBy('/v2/c2pa/audio', body, async () => {
      published = filesAt(output);
    });
    assert.equal((await service.finish(jobId)).status, 'succeeded');
    assert.notDeepEqual(published, {});
    assert.deepEqual(filesAt(output), published);
  });
}

test('A publication that was published when the service was killed is not signed again with other bytes', async (t) => {
  const folder = temporaryFolder();
  const path = makeFfmpegHls(makeFilm(folder), join(folder, 'killed-when-delivered'));
  const service = new KilledService({ folder: join(folder, 'service') });
  t.after(() => service.stop());
  const params = { playlist_pattern: '*.m3u8', init_pattern: 'init*', frag_pattern: '*.m4s' };
  const body = { inputs: [{ type: 'local_folder_path', path }], params };
  const output = join(folder, 'service/output/killed-when-delivered');
  let published: Files = {};
  const jobId = await service.killBy('/v2/c2pa/fragmented', body, async () => {
    published = filesAt(output);
  });
  assert.equal((await service.finish(jobId)).output_path, output);
  assert.deepEqual(filesAt(output), published);
});

testKills({ signFile: ['sealed'], signPublication: [], packageMedia: ['packaged'], packageAndSign: [] });
