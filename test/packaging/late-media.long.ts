import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const film = join(place, 'film.mp4');

/** Two cues, so much later. */
function cuesAt(seconds: number, header = 'WEBVTT'): string {
  const at = (time: number): string => new Date((seconds + time) * 1000).toISOString().slice(11, 23);
  return `${header}\n\n${at(1)} --> ${at(3)}\ngood evening\n\n${at(6.5)} --> ${at(7.5)}\nto the end\n`;
}

/** HLS and DASH whose media start at ten seconds of their own time, with subtitles in both. */
let late: string;

before(() => {
  makeFilm(place);
  ffmpeg(place, ['-i', film], '-map 0:v -map 0:a:0 -c copy -muxdelay 0 -muxpreload 0 -output_ts_offset 10 late.ts');
  writeFileSync(join(place, 'late.vtt'), cuesAt(10));
  const packager = join(
    dirname(createRequire(import.meta.url).resolve('shaka-packager/package.json')),
    `bin/packager-linux-${process.arch}`,
  );
  const stream = (kind: string, options: string) =>
    `in=late.ts,stream=${kind},init_segment=late/${kind}/init.mp4,segment_template=late/${kind}/$Number$.m4s,playlist_name=${kind}/index.m3u8${options}`;
  const args = [
    ...['--quiet', '--segment_duration=2', '--generate_static_live_mpd'],
    ...['--hls_master_playlist_output=late/master.m3u8', '--mpd_output=late/manifest.mpd'],
    stream('video', ''),
    stream('audio', ',hls_group_id=audio,hls_name=English'),
    'in=late.vtt,stream=text,segment_template=late/text/$Number$.vtt,playlist_name=text/index.m3u8,hls_group_id=text,hls_name=English,lang=en,hls_only=1',
    'in=late.vtt,stream=text,init_segment=late/text/init.mp4,segment_template=late/text/$Number$.m4s,lang=en,dash_only=1',
  ];
  execFileSync(packager, args, { cwd: place, stdio: 'pipe' });
  late = join(place, 'late');
});

/** A copy of the publication that is late, with changes. */
function variantOf(name: string, change: (folder: string) => void): string {
  const folder = join(place, name);
  cpSync(late, folder, { recursive: true });
  change(folder);
  return folder;
}

/** The times of all cues of an output, once each. */
function cueTimes(outputPath: string): string[] {
  const folder = join(outputPath, 'text/en');
  const segments = readdirSync(folder).filter((name) => name.endsWith('.vtt'));
  const text = segments.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
  return [...new Set(text.match(/\S+ --> [\d:.]+/g))].sort();
}

/** When the first packet of a rendition is shown, in milliseconds. */
function startOf(outputPath: string, rendition: string): number {
  const options = ['-v', 'error', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', 'pipe:0'];
  const input = joinRendition(join(outputPath, rendition));
  const [first = ''] = execFileSync('ffprobe', options, { input, encoding: 'utf8' }).split('\n');
  return Math.round(Number.parseFloat(first) * 1000);
}

const REPACKAGED = { existing: 'repackage' } as const;
const AT_THEIR_TIMES = ['00:00:01.000 --> 00:00:03.000', '00:00:06.500 --> 00:00:07.500'];

describe('a publication whose media start late is made anew from zero', () => {
  test('with the subtitles of its HLS at their times, and sound and picture as far apart as they were', async () => {
    const { outputPath, reasons } = await packageInput(late, REPACKAGED);
    // The sound starts by the length of its first frame before the picture, which is where the film starts now.
    assert.deepEqual(
      cueTimes(outputPath).map((times) => times.replaceAll('.021', '.000').replaceAll('.521', '.500')),
      AT_THEIR_TIMES,
    );
    assert.deepEqual([startOf(outputPath, 'video/h264_180p'), startOf(outputPath, 'audio/en_aac')], [21, 0]);
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'audio/en_aac'))), packetHashes(film, 'a:0'));
    assert.deepEqual(reasons, []);
  });

  test('with the subtitles of its DASH', async () => {
    const folder = variantOf('late-dash', (path) => {
      for (const name of readdirSync(path, { recursive: true, encoding: 'utf8' }))
        if (/\.(?:m3u8|vtt)$/.test(name)) rmSync(join(path, name));
    });
    const { outputPath } = await packageInput(folder, REPACKAGED);
    assert.equal(cueTimes(outputPath).length, 2);
    assert.match(cueTimes(outputPath)[0] ?? '', /^00:00:01\.02/);
    assert.equal(startOf(outputPath, 'audio/en_aac'), 0);
  });

  test('with subtitles that say which time of the media theirs are', async () => {
    const folder = variantOf('late-mapped', (path) => {
      rmSync(join(path, 'text'), { recursive: true });
      mkdirSync(join(path, 'text'));
      // Their own time is that of a day: an hour of it is the start of the media.
      const header = 'WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:01:00:00.000';
      writeFileSync(join(path, 'text/all.vtt'), cuesAt(3600, header));
      writeFileSync(
        join(path, 'text/index.m3u8'),
        '#EXTM3U\n#EXT-X-TARGETDURATION:8\n#EXTINF:8,\nall.vtt\n#EXT-X-ENDLIST\n',
      );
      rmSync(join(path, 'manifest.mpd'));
    });
    const { outputPath } = await packageInput(folder, REPACKAGED);
    assert.match(cueTimes(outputPath).join(), /^00:00:01\.02\d --> 00:00:03\.02\d,00:00:06\.52/);
  });

  test('with subtitles that count from the start of the film', async () => {
    const folder = variantOf('late-from-zero', (path) => {
      rmSync(join(path, 'text'), { recursive: true });
      mkdirSync(join(path, 'text'));
      writeFileSync(join(path, 'text/all.vtt'), cuesAt(0));
      writeFileSync(
        join(path, 'text/index.m3u8'),
        '#EXTM3U\n#EXT-X-TARGETDURATION:8\n#EXTINF:8,\nall.vtt\n#EXT-X-ENDLIST\n',
      );
      rmSync(join(path, 'manifest.mpd'));
    });
    const { outputPath } = await packageInput(folder, REPACKAGED);
    assert.deepEqual(cueTimes(outputPath), AT_THEIR_TIMES);
  });
});

test('transport streams of which sound and picture start at different times stay in sync', async () => {
  const folder = join(place, 'apart');
  mkdirSync(folder);
  ffmpeg(
    folder,
    ['-i', film, '-itsoffset', '0.5', '-i', film, '-var_stream_map', 'v:0,agroup:a a:0,agroup:a,language:en'],
    '-map 1:v -map 0:a:0 -c copy -f hls -hls_time 2 -hls_playlist_type vod -master_pl_name master.m3u8 -hls_segment_filename s_%v_%d.ts i_%v.m3u8',
  );
  const { outputPath } = await packageInput(folder);
  assert.equal(startOf(outputPath, 'audio/en_aac'), 0);
  const distance = startOf(outputPath, 'video/h264_180p');
  assert.ok(Math.abs(distance - 521) < 2, `${distance} ms`);
});
