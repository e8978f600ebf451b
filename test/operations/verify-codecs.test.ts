import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { filesAt } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { asserted, type Files, home, signedOf, verified } from './unsigned-playlists.ts';

// Codecs as playlists state them: players leave out those that they do not know, and play what is left.

const buffersAt = (folder: string): Files =>
  Object.fromEntries(Object.entries(filesAt(folder)).map(([path, bytes]) => [path, Buffer.from(bytes)]));
const film = makeFilm(home);
const MASTER = 'master.m3u8';
const OTHER = /it says that what it offers is [^ ]+, which it is not/;

/** Returns a signed publication, and a function that verifies it with other codecs of its variants. */
async function codecsOf(files: Files) {
  const signed = await signedOf(files, '*.m3u8');
  const text = `${signed[MASTER]}`;
  const [, stated = ''] = /CODECS="([^"]*)"/.exec(text) ?? [];
  return {
    stated,
    with: (codecs: string) =>
      verified({ ...signed, [MASTER]: text.replaceAll(`CODECS="${stated}"`, `CODECS="${codecs}"`) }),
  };
}

describe('a variant of AVC and AAC', async () => {
  const options = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1';
  const codecs = await codecsOf(buffersAt(makeFfmpegDash(film, join(home, 'dash'), options)));

  for (const named of [
    'avc1.42c00c,mp4a.40.2',
    'mp4a.40.2, avc1.42C00C',
    'avc1.42000c,mp4a.40.5',
    'avc3.42e00d,mp4a.40.29',
    'avc1.66.30,mp4a.40.2',
    'avc1.42c00c,mp4a.40.2,wvtt,stpp.ttml.im1t',
  ]) {
    test(`is valid as ${named}`, async () => asserted(await codecs.with(named), 'valid', /Media unchanged/));
  }

  for (const named of [
    'avc1.42c00c,mp4a.40.2,ac-4',
    'avc1.42c00c,mp4a.40.2,xxxx',
    'avc1.42c00c,mp4a.40.2,hvc1.1.6.L93.B0',
    'avc1.42c30c,mp4a.40.2',
    'avc1.42c10c,mp4a.40.2',
    'avc1,mp4a.40.2',
    'avc1.42c00,mp4a.40.2',
    'avc1.66.x,mp4a.40.2',
    'avc1.42c00c.1,mp4a.40.2',
    'avc1.42c00c,mp4a.40.42',
    'avc1.42c00c,mp4a',
  ]) {
    test(`is ambiguous as ${named}`, async () => asserted(await codecs.with(named), 'invalid', OTHER));
  }
});

describe('a variant', () => {
  for (const [family, options, other] of [
    ['HEVC', '-c:v libx265 -x265-params log-level=error -tag:v hvc1', 'hvc1.4.10.L93.B0'],
    ['VP9', '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -strict experimental', 'vp09.02.10.10'],
  ] as const) {
    test(`of ${family} is valid as ffmpeg names it, and ambiguous by another profile`, async () => {
      const folder = join(home, family);
      mkdirSync(folder);
      ffmpeg(
        folder,
        ['-i', film],
        `-map 0:v ${options} -b:v 100k -g 24 -f hls -hls_time 1 -hls_list_size 0 -hls_segment_type fmp4 -hls_fmp4_init_filename init.mp4 -hls_segment_filename %d.m4s -master_pl_name master.m3u8 v.m3u8`,
      );
      const files = buffersAt(folder);
      const text = `${files[MASTER]}`;
      const named = text.includes('CODECS') ? text : text.replace(/BANDWIDTH=\d+/, '$&,CODECS="vp09.00.10.08"');
      const codecs = await codecsOf({ ...files, [MASTER]: Buffer.from(named) });
      asserted(await codecs.with(codecs.stated), 'valid', /Media unchanged/);
      asserted(await codecs.with(codecs.stated.slice(0, 4)), 'valid', /Media unchanged/);
      asserted(await codecs.with(other), 'invalid', OTHER);
      asserted(await codecs.with(codecs.stated.replace(/(\.L?)\d\d(?=\.)/, '$199')), 'invalid', OTHER);
    });
  }
});
