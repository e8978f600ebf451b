import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { InputPhase } from '#operations/operation.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import {
  assertFragmentsValid,
  assertSignedPublication,
  type Files,
  renditionsOf,
} from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { KilledService } from './killed-service.ts';

/** The phases at which a service is killed, by what it does then. */
export interface KillPhases {
  readonly signFile: readonly InputPhase[];
  readonly signPublication: readonly InputPhase[];
  readonly packageMedia: readonly InputPhase[];
  readonly packageAndSign: readonly InputPhase[];
}

const PACKAGED = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };
const PATTERNS = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };

/** Tests that a service that is killed at a phase finishes its input after the next start. Each kills a service of its own. */
export function testKills({ signFile, signPublication, packageMedia, packageAndSign }: KillPhases): void {
  const folder = temporaryFolder();
  const film = makeFilm(folder);

  for (const phase of signFile) {
    test(`A service killed while a film is ${phase} finishes it after the next start, and leaves nothing staged`, async (t) => {
      const path = join(newFolder(folder), `killed-when-${phase}.mp4`);
      copyFileSync(film, path);
      const output = await outputAfterKill(t, 'c2pa/video', { type: 'local_file_path', path });
      assert.equal(basename(output), `killed-when-${phase}_c2pa.mp4`);
      await assertValid(readFileSync(output), 'video/mp4');
    });
  }

  for (const phase of signPublication) {
    test(`A service killed while a publication is ${phase} delivers it whole after the next start, and leaves nothing staged`, async (t) => {
      const publication = makeFfmpegHls(film, join(newFolder(folder), `killed-when-${phase}`));
      const params = { playlist_pattern: PATTERNS.playlist, init_pattern: PATTERNS.init, frag_pattern: PATTERNS.frag };
      const output = await folderAfterKill(t, 'c2pa/fragmented', publication, params);
      await assertSignedPublication(filesAt(publication), PATTERNS, output);
    });
  }

  const mediaFor = (phase: InputPhase): string => {
    const source = join(newFolder(folder), `killed-when-${phase}`);
    mkdirSync(source);
    copyFileSync(film, join(source, 'film.mp4'));
    return source;
  };

  for (const phase of packageMedia) {
    test(`A service killed while media is ${phase} packages it after the next start, and leaves nothing staged`, async (t) => {
      const output = await folderAfterKill(t, 'package', mediaFor(phase));
      assert.equal((await renditionsOf(output, PACKAGED)).length, 2);
    });
  }

  for (const phase of packageAndSign) {
    test(`A service killed while media is ${phase} packages and signs it after the next start, and leaves nothing staged`, async (t) => {
      const output = await folderAfterKill(t, 'c2pa/package', mediaFor(phase));
      const renditions = await renditionsOf(output, PACKAGED);
      assert.equal(renditions.length, 2);
      await assertFragmentsValid(output, renditions);
    });
  }
}

function newFolder(parent: string): string {
  return mkdtempSync(join(parent, 'case-'));
}

async function folderAfterKill(t: TestContext, route: string, path: string, params: object = {}): Promise<Files> {
  return filesAt(await outputAfterKill(t, route, { type: 'local_folder_path', path }, params));
}

/** Has an input kill a service, starts it again, and returns the path of the only output that it then delivers. */
async function outputAfterKill(
  t: TestContext,
  route: string,
  input: { readonly type: string; readonly path: string },
  params: object = {},
): Promise<string> {
  const service = new KilledService({ folder: join(dirname(input.path), 'service') });
  t.after(() => service.stop());
  const result = await service.finish(await service.killBy(`/v2/${route}`, { inputs: [input], params }));
  assert.equal(result.status, 'succeeded', result.error);
  const output = result.output_path ?? '';
  assert.deepEqual(readdirSync(dirname(output)), [basename(output)]);
  return output;
}
