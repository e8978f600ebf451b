import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { INPUT_PHASES, type InputPhase } from '#operations/operation.ts';
import { startService } from '../../scripts/running-service.ts';
import { filesAt } from '../publications/make-folder.ts';
import { makeFfmpegHls, makeFilm, temporaryFolder } from '../publications/make-media.ts';
import { assertFragmentsValid, assertSignedPublication, type Files, renditionsOf } from './signed-publication.ts';

const PACKAGED = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };
const KILLING_SERVICE = fileURLToPath(new URL('./killing-service.ts', import.meta.url));

const folder = temporaryFolder();
const film = makeFilm(folder);

/** Kills a service at a phase of an input, starts it again, and returns the files that it then delivers. */
async function deliverAfterKill(route: string, phase: InputPhase, source: string, params: object): Promise<Files> {
  const home = join(folder, 'services', route, phase);
  const killed = await startService({ folder: home, program: KILLING_SERVICE, settings: { KILL_AT: phase } });
  const inputs = [{ type: 'local_folder_path', path: source }];
  const jobId = await killed.submit(`/v2/${route}`, { inputs, params });
  await killed.ended;

  await using service = await startService({ folder: home });
  const job = await service.waitFor(jobId);

  assert.equal(job.status, 'succeeded', job.results[0]?.error);
  const output = join(home, 'output', basename(source));
  assert.equal(job.results[0]?.output_path, output);
  assert.deepEqual(readdirSync(join(home, 'output')), [basename(source)]);
  assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
  const scratch = join(home, 'data', 'scratch');
  assert.deepEqual(existsSync(scratch) ? readdirSync(scratch) : [], []);
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
