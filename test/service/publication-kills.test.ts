import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { INPUT_PHASES } from '#operations/operation.ts';
import { startService } from '../../scripts/running-service.ts';
import { filesAt } from '../publications/make-folder.ts';
import { makeFfmpegHls, makeFilm, temporaryFolder } from '../publications/make-media.ts';
import { assertSignedPublication } from './signed-publication.ts';

const KILLING_SERVICE = fileURLToPath(new URL('./killing-service.ts', import.meta.url));

describe('A service that is killed while a publication is', () => {
  const folder = temporaryFolder();
  const publication = makeFfmpegHls(makeFilm(folder), join(folder, 'evening'));
  const patterns = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
  const body = {
    inputs: [{ type: 'local_folder_path', path: publication }],
    params: { playlist_pattern: patterns.playlist, init_pattern: patterns.init, frag_pattern: patterns.frag },
  };

  for (const phase of INPUT_PHASES) {
    test(`${phase} delivers it whole after the next start, and leaves nothing staged`, async () => {
      const home = join(folder, phase);
      const killed = await startService({ folder: home, program: KILLING_SERVICE, settings: { KILL_AT: phase } });
      const jobId = await killed.submit('/v2/c2pa/fragmented', body);
      await killed.ended;

      await using service = await startService({ folder: home });
      const job = await service.waitFor(jobId);

      assert.equal(job.status, 'succeeded', job.results[0]?.error);
      const output = join(home, 'output', 'evening');
      assert.equal(job.results[0]?.output_path, output);
      await assertSignedPublication(filesAt(publication), patterns, filesAt(output));
      assert.deepEqual(readdirSync(join(home, 'output')), ['evening']);
      assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
    });
  }
});
