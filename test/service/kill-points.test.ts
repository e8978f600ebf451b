import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { MAX_SERVICE_EXITS } from '#jobs/store/finish-input.ts';
import { INPUT_PHASES, type InputPhase } from '#operations/operation.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm, temporaryFolder } from '../support/publications/make-publication.ts';
import {
  assertFragmentsValid,
  assertSignedPublication,
  type Files,
  renditionsOf,
} from '../support/publications/signed-publication.ts';
import { KilledService } from './killed-service.ts';

const PACKAGED = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };

const folder = temporaryFolder();
const film = makeFilm(folder);

const service = new KilledService({ folder: join(folder, 'service') });
after(() => service.stop());
const delivered: string[] = [];

/** Has a copy of a folder kill the service at a phase, starts it again, and returns the files that it then delivers. */
async function deliverAfterKill(route: string, phase: InputPhase, source: string, params: object): Promise<Files> {
  const copy = `${source}-${route.replace('/', '-')}-killed-when-${phase}`;
  cpSync(source, copy, { recursive: true });
  const inputs = [{ type: 'local_folder_path', path: copy }];
  const result = await service.finish(await service.killBy(`/v2/${route}`, { inputs, params }));

  assert.equal(result.status, 'succeeded', result.error);
  const output = join(folder, 'service/output', basename(copy));
  assert.equal(result.output_path, output);
  delivered.push(basename(copy));
  assert.deepEqual(readdirSync(dirname(output)), delivered.toSorted());
  return filesAt(output);
}

describe('A service that is killed while a publication is', () => {
  const publication = makeFfmpegHls(film, join(folder, 'evening'));
  const patterns = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
  const params = { playlist_pattern: patterns.playlist, init_pattern: patterns.init, frag_pattern: patterns.frag };

  for (const phase of INPUT_PHASES.filter((each) => each !== 'packaged')) {
    test(`${phase} delivers it whole after the next start, and leaves nothing staged`, async () => {
      const output = await deliverAfterKill('c2pa/fragmented', phase, publication, params);
      await assertSignedPublication(filesAt(publication), patterns, output);
    });
  }
});

describe('A service that is killed while a folder of media is', () => {
  const source = join(folder, 'media');
  mkdirSync(source);
  copyFileSync(film, join(source, 'film.mp4'));

  for (const phase of ['staged', 'packaged', 'delivered'] as const) {
    test(`${phase} packages it after the next start, and leaves nothing staged`, async () => {
      const output = await deliverAfterKill('package', phase, source, {});
      assert.equal((await renditionsOf(output, PACKAGED)).length, 2);
    });
  }

  // Segments are signed from "staged" on.
  for (const phase of INPUT_PHASES) {
    test(`${phase} packages and signs it after the next start, and leaves nothing staged`, async () => {
      const output = await deliverAfterKill('c2pa/package', phase, source, {});
      const renditions = await renditionsOf(output, PACKAGED);
      assert.equal(renditions.length, 2);
      await assertFragmentsValid(output, renditions);
    });
  }
});

describe('A service that is killed while an input is', () => {
  const sample = join(folder, 'sample.mp4');

  before(() => {
    const picture = ['-f', 'lavfi', '-i', 'testsrc=duration=2:size=320x240'];
    makeMedia(folder, [...picture, '-c:v', 'libx264', 'sample.mp4']);
  });

  const requestFor = (name: string) => {
    const path = join(folder, `${name}.mp4`);
    copyFileSync(sample, path);
    return { inputs: [{ type: 'local_file_path', path }] };
  };

  // A file that is signed is not packaged before.
  for (const phase of INPUT_PHASES.filter((each) => each !== 'packaged')) {
    test(`${phase} finishes it after the next start, and leaves nothing staged`, async () => {
      const name = `sample-killed-when-${phase}`;
      const result = await service.finish(await service.killBy('/v2/c2pa/video', requestFor(name)));

      assert.equal(result.status, 'succeeded', result.error);
      const output = join(folder, 'service/output', `${name}_c2pa.mp4`);
      assert.equal(result.output_path, output);
      await assertValid(readFileSync(output), 'video/mp4');
      delivered.push(basename(output));
      assert.deepEqual(readdirSync(dirname(output)), delivered.toSorted());
    });
  }

  test('again and again fails that input alone, with a message that says so', async () => {
    const home = join(folder, 'again-and-again');
    const service = new KilledService({ folder: home });
    const jobId = await service.killBy('/v2/c2pa/video', requestFor('sample-always-killed-when-copied'));
    // The exits before the last are only noted: each would take a start of the service.
    const store = new DatabaseSync(join(home, 'data/jobs.sqlite'));
    store.prepare('update inputs set service_ends = ?').run(MAX_SERVICE_EXITS - 1);
    store.close();

    const result = await service.finish(jobId);
    await service.stop();

    assert.equal(result.status, 'failed');
    assert.equal(result.error_details?.reason, 'INPUT_ENDED_PROCESS');
  });
});
