import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { assertSameFrames, decodedFrames } from '../support/judges/publication-judges.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import {
  ffmpeg,
  makeFfmpegDash,
  makeFfmpegHls,
  makeFilm,
  makeShakaByteRanges,
} from '../support/publications/make-publication.ts';
import { assertSignedPublication } from '../support/publications/signed-publication.ts';
import type { FileServer } from '../support/servers/file-server.ts';
import { startServer, type TestServer } from '../support/servers/http-server.ts';
import { startNginx } from '../support/servers/nginx.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const root = join(folder, 'served');
const home = join(folder, 'service');
const SECRET = 'X-Amz-Signature=hush-hush';
const patterns = { playlist: '*.{m3u8,mpd}', init: 'init*', frag: '*.m4s' };

let nginx: FileServer;
let service: RunningService;
before(async () => {
  mkdirSync(root);
  const film = makeFilm(folder);
  copyFileSync(film, join(root, 'film.mp4'));
  ffmpeg(root, ['-i', film], '-vn -c:a pcm_s16le sound.wav');
  ffmpeg(root, ['-i', film], '-c copy -movflags +faststart+frag_keyframe fragmented.mp4');
  makeFfmpegHls(film, join(root, 'evening'));
  makeFfmpegDash(film, join(root, 'dash'));
  makeShakaByteRanges(film, join(root, 'ranges'));
  writeFileSync(join(root, 'evening', 'read me.txt'), 'nobody names me');
  nginx = await startNginx(root);
  service = await startService({ folder: home });
});
after(async () => {
  await service?.stop();
  await nginx?.stop();
});

let outputs = 0;

/** Signs one remote input to a place of its own. */
function sign(kind: 'video' | 'audio' | 'fragmented', url: string, params: object = {}, hint?: string) {
  const type = kind === 'fragmented' ? 'remote_folder_url' : 'remote_file_url';
  return service.runSync(`/v2/sync/c2pa/${kind}`, {
    inputs: [{ type, url, ...(hint !== undefined && { filename_hint: hint }) }],
    output: { type: 'local', name: String(outputs++) },
    params,
  });
}

function outputOf({ status, results: [result] }: JobResultResponse): string {
  assert.equal(status, 'succeeded', result?.error);
  assert.deepEqual(result?.warnings ?? [], []);
  return result?.output_path as string;
}

describe('a file over HTTP is signed and read back', () => {
  for (const place of ['plain', 'no-ranges', 'moved', 'named']) {
    test(`from ${place}`, async () => {
      const film = outputOf(await sign('video', `${nginx.base}/${place}/film.mp4?${SECRET}`));
      assert.equal(basename(film), place === 'named' ? 'from the server_c2pa.mp4' : 'film_c2pa.mp4');
      assert.equal(decodedFrames(film), decodedFrames(join(root, 'film.mp4')));
      const sound = outputOf(await sign('audio', `${nginx.base}/${place}/sound.wav?${SECRET}`, {}, 'hint.wav'));
      assert.equal(basename(sound), 'hint_c2pa.wav');
      const fragmented = outputOf(await sign('video', `${nginx.base}/${place}/fragmented.mp4`, {}, 'f.mp4'));
      assert.equal(decodedFrames(fragmented), decodedFrames(join(root, 'fragmented.mp4')));
    });
  }

  test('with a chain of its own, and with a parent that is fetched too', async () => {
    const signed = outputOf(await sign('video', `${nginx.base}/plain/film.mp4`));
    copyFileSync(signed, join(root, 'signed.mp4'));
    for (const place of ['plain', 'no-ranges']) {
      const again = outputOf(await sign('video', `${nginx.base}/${place}/signed.mp4`));
      const { ingredients, manifestCount } = await readManifest(readFileSync(again), 'video/mp4');
      assert.deepEqual([ingredients.length, manifestCount], [1, 2]);
      assert.deepEqual(
        ingredients[0]?.validation_results?.activeManifest.failure.map(({ code }) => code),
        ['signingCredential.untrusted'],
      );
      assert.equal(ingredients[0]?.title, 'signed.mp4');

      const source = { type: 'remote_file_url', url: `${nginx.base}/${place}/signed.mp4?${SECRET}` };
      const child = outputOf(
        await sign('audio', `${nginx.base}/plain/sound.wav`, { parent: { type: 'file', source } }),
      );
      const manifest = await readManifest(readFileSync(child));
      assert.partialDeepStrictEqual(manifest.ingredients, [{ title: 'signed.mp4', relationship: 'parentOf' }]);
      assert.equal(manifest.manifestCount, 2);
    }
  });
});

describe('a publication over HTTP is signed and read back', () => {
  for (const [what, path, playlist] of [
    ['that nginx lists as HTML', 'html/evening', '*.m3u8'],
    ['that nginx lists as JSON', 'json/evening/', '*.m3u8'],
    ['that is found by its playlist', 'plain/evening/master.m3u8', '*.m3u8'],
    ['that is found by a literal pattern', 'plain/evening', 'master.m3u8'],
    ['that a server without ranges has', 'no-ranges/evening/', '*.m3u8'],
    ['that an MPD addresses', 'plain/dash/manifest.mpd', '*.mpd'],
  ] as const) {
    test(what, async () => {
      const patternParams = { playlist_pattern: playlist, init_pattern: patterns.init, frag_pattern: patterns.frag };
      const output = outputOf(await sign('fragmented', `${nginx.base}/${path}?${SECRET}`, patternParams));
      const source = join(root, path.includes('dash') ? 'dash' : 'evening');
      assert.equal(basename(output), basename(source));
      const isListed = !path.startsWith('plain');
      const served = filesAt(source);
      const signed = filesAt(output);
      const expected = isListed ? served : Object.fromEntries(Object.keys(signed).map((name) => [name, served[name]]));
      assert.equal('read me.txt' in signed, isListed && source.endsWith('evening'));
      await assertSignedPublication(expected as typeof served, { ...patterns, playlist }, signed);
    });
  }
});

describe('a publication of byte ranges over HTTP is laid out anew, signed and read back', () => {
  const everyMp4 = { init: '*.{mp4,m4s}', frag: '*.{mp4,m4s}' };
  for (const [what, path, playlist] of [
    ['that is found by its playlist', 'plain/ranges/master.m3u8', '*.m3u8'],
    ['that an MPD addresses by the index of each file', 'plain/ranges/manifest.mpd', '*.mpd'],
  ] as const) {
    test(what, async () => {
      const patternParams = { playlist_pattern: playlist, init_pattern: everyMp4.init, frag_pattern: everyMp4.frag };
      const output = outputOf(await sign('fragmented', `${nginx.base}/${path}`, patternParams));
      const served = filesAt(join(root, 'ranges'));
      const media = Object.entries(served).filter(
        ([name]) => !/\.(m3u8|mpd)$/.test(name) || playlist.endsWith(extname(name)),
      );
      await assertSignedPublication(Object.fromEntries(media), { ...everyMp4, playlist }, filesAt(output));
    });
  }
});

describe('a folder of sources over HTTP is packaged', () => {
  before(() => {
    mkdirSync(join(root, 'sources'));
    copyFileSync(join(root, 'film.mp4'), join(root, 'sources', 'film.mp4'));
  });
  for (const place of ['html', 'no-ranges']) {
    for (const operation of ['package', 'c2pa/package']) {
      test(`by ${operation} from ${place}`, async () => {
        const made = async (input: object) =>
          outputOf(
            await service.runSync(`/v2/sync/${operation}`, {
              inputs: [input],
              output: { type: 'local', name: String(outputs++) },
              params: {},
            }),
          );
        const remote = await made({ type: 'remote_folder_url', url: `${nginx.base}/${place}/sources/` });
        const local = await made({ type: 'local_folder_path', path: join(root, 'sources') });
        assert.equal(basename(remote), 'sources');
        assert.deepEqual(
          readdirSync(remote, { recursive: true }).sort(),
          readdirSync(local, { recursive: true }).sort(),
        );
        assertSameFrames(remote, local, ['master.m3u8']);
      });
    }
  }
});

describe('what is secret or temporary', () => {
  let hostile: TestServer;
  before(async () => {
    hostile = await startServer((request, response) => {
      if (request.url?.startsWith('/moved')) response.writeHead(302, { location: `/gone.mp4?${SECRET}` }).end();
      else if (request.url?.startsWith('/cut')) {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('x', () => response.destroy());
      } else response.writeHead(403).end(`<Code>AccessDenied</Code>${request.url}`);
    });
  });
  after(() => hostile?.close());

  test('in the query of an address is in no answer, no log, no manifest and no output', async () => {
    const answers: string[] = [];
    for (const path of ['moved.mp4', 'cut.mp4', 'forbidden.mp4']) {
      const job = await sign('video', `${hostile.base}/${path}?${SECRET}`);
      assert.equal(job.status, 'failed');
      answers.push(JSON.stringify(job), JSON.stringify(await service.lookUp(job.job_id)));
    }
    const folderJob = await sign('fragmented', `${hostile.base}/moved/?${SECRET}`, {
      playlist_pattern: '*.m3u8',
      init_pattern: 'i',
      frag_pattern: 'f',
    });
    answers.push(JSON.stringify(folderJob));
    const signed = outputOf(await sign('video', `${nginx.base}/plain/film.mp4?${SECRET}`));
    for (const text of [...answers, readFileSync(service.logPath, 'utf8'), readFileSync(signed, 'latin1')]) {
      assert.doesNotMatch(text, /hush/);
    }
  });

  test('in the scratch folder is gone when its input has ended', () => {
    assert.deepEqual(readdirSync(join(home, 'data', 'scratch')), []);
  });
});
