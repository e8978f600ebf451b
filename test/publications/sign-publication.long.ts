import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertSameFrames } from '../support/judges/publication-judges.ts';
import { folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash } from '../support/publications/make-publication.ts';
import { signFolder } from '../support/publications/sign-folder.ts';

import { film, folder, IN_ONE_FILE, patterns, testPublications } from './sign-publication.ts';

testPublications(IN_ONE_FILE);

test('ffmpeg plays a publication of so many fragments that their leaf rows would lie before the moov', async () => {
  const made = makeFfmpegDash(film, join(folder, 'short'), '-seg_duration 0.25 -use_timeline 1 -use_template 1');
  const [init, fragment] = ['init-stream1.m4s', 'chunk-stream1-00002.m4s'].map((name) =>
    readFileSync(join(made, name)),
  );
  const names = Array.from({ length: 900 }, (_, index) => `${index}.m4s`);
  const head = ['#EXTM3U', '#EXT-X-TARGETDURATION:1', '#EXT-X-MAP:URI="init.mp4"'];
  const playlist = [...head, ...names.flatMap((name) => ['#EXTINF:0.25,', name]), '#EXT-X-ENDLIST', ''].join('\n');
  const source = {
    'index.m3u8': playlist,
    'init.mp4': init as Buffer,
    ...Object.fromEntries(names.map((name) => [name, fragment as Buffer])),
  };
  const signed = await signFolder(folderOf(source), patterns, 10_000);
  const at = ['many', 'many-signed'].map((name) => join(folder, name)) as [string, string];
  writeFiles(at[0], source);
  writeFiles(at[1], signed.output);
  assertSameFrames(...at, ['index.m3u8']);
});
