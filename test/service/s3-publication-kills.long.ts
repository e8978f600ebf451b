import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import { assertSignedPublication } from '../support/publications/signed-publication.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { KilledService } from './killed-service.ts';
import { s3Settings } from './s3-settings.ts';

const PATTERNS = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
const PARAMS = { playlist_pattern: PATTERNS.playlist, init_pattern: PATTERNS.init, frag_pattern: PATTERNS.frag };

const folder = temporaryFolder();
const publication = filesAt(makeFfmpegHls(makeFilm(folder), join(folder, 'evening')));

let s3: TestS3;
let bucket: string;
let service: KilledService;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  for (const [path, Body] of Object.entries(publication)) {
    await s3.client.putObject({ Bucket: bucket, Key: `in/evening/${path}`, Body });
  }
  const settings = { ...s3Settings(s3, bucket), SERVICE__SIGNING__VERIFY_OUTPUTS: 'false' };
  service = new KilledService({ folder: join(folder, 'killed'), settings });
});
after(async () => {
  await service.stop();
  await s3.close();
});

for (const phase of ['copied', 'signed', 'sealed', 'delivered']) {
  test(`A service killed while a publication from bucket to bucket is ${phase} delivers it after the next start, and leaves nothing else`, async () => {
    const prefix = `killed-when-${phase}`;
    const body = {
      inputs: [{ type: 'remote_folder_url', url: `s3://${bucket}/in/evening/` }],
      output: { type: 's3', bucket, prefix },
      params: PARAMS,
    };

    const result = await service.finish(await service.killBy('/v2/c2pa/fragmented', body));

    assert.equal(result.status, 'succeeded', result.error);
    const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: `${prefix}/evening/` });
    const written = Contents.map(async ({ Key = '' }) => {
      const { Body } = await s3.client.getObject({ Bucket: bucket, Key });
      const bytes = Buffer.from((await Body?.transformToByteArray()) ?? []);
      return [Key.slice(`${prefix}/evening/`.length), bytes] as const;
    });
    const output = Object.fromEntries(await Promise.all(written));
    await assertSignedPublication(publication, PATTERNS, output);
    assert.deepEqual(Object.keys(output).sort(), Object.keys(publication).sort());
    const { Uploads } = await s3.client.listMultipartUploads({ Bucket: bucket, Prefix: `${prefix}/` });
    assert.deepEqual(Uploads ?? [], []);
  });
}
