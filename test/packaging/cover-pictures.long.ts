import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();

before(() => {
  makeFilm(place);
  for (const picture of ['cover.jpg', 'cover.png'])
    ffmpeg(place, ['-f', 'lavfi', '-i', 'testsrc2=s=1200x1200'], `-frames:v 1 -update 1 ${picture}`);
});

/** Packages a folder that ffmpeg makes of the film and a picture, and returns what was left out. */
async function leftOutOf(name: string, picture: string, maps: string): Promise<{ leftOut: string[]; path: string }> {
  const folder = join(place, name.replace('.', '-'));
  mkdirSync(folder);
  ffmpeg(place, ['-i', 'film.mp4', '-i', picture], `${maps} -c copy -disposition:v 0 ${join(folder, name)}`);
  const { outputPath, warnings } = await packageInput(folder);
  const tracks = warnings.filter(({ reason }) => reason === 'TRACK_LEFT_OUT');
  return { leftOut: tracks.map(({ details }) => (details as { track: string }).track), path: outputPath };
}

describe('a cover picture in a track of its own', () => {
  for (const [name, picture] of [
    ['jpeg.mp4', 'cover.jpg'],
    ['png.mov', 'cover.png'],
    ['jpeg.mkv', 'cover.jpg'],
  ] as const) {
    test(`is left out of ${name} as a picture, and the film is packaged, though the picture comes first`, async () => {
      const { leftOut, path } = await leftOutOf(name, picture, '-map 1 -map 0:v -map 0:a:0');
      assert.deepEqual(leftOut, ['the cover picture']);
      assert.deepEqual(
        packetHashes(joinRendition(join(path, 'video/h264_180p'))),
        packetHashes(join(place, 'film.mp4'), 'v:0'),
      );
    });
  }

  test('of a song makes no rendition of video', async () => {
    const { leftOut } = await leftOutOf('song.mp4', 'cover.jpg', '-map 0:a:0 -map 1');
    assert.deepEqual(leftOut, ['the cover picture']);
  });
});
