import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { M3U8Parser } from 'hls.js';
import type { PackageParams } from '#contract/package-request.ts';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm, SRT } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const film = join(place, 'film');

before(() => {
  mkdirSync(film);
  makeFilm(film);
  writeFileSync(join(film, 'film.fr.srt'), SRT);
});

describe('packaging a folder', () => {
  test('makes HLS and DASH over the same segments, with the packets of the source', async () => {
    const { outputPath } = await packageInput(film);
    const renditions = { 'video/h264_180p': 'v:0', 'audio/en_aac': 'a:0', 'audio/de_aac': 'a:1' };
    for (const [folder, stream] of Object.entries(renditions)) {
      const packets = packetHashes(joinRendition(join(outputPath, folder)));
      assert.deepEqual(packets, packetHashes(join(film, 'film.mp4'), stream), folder);
    }
    const master = readFileSync(join(outputPath, 'master.m3u8'), 'utf8');
    const mpd = readFileSync(join(outputPath, 'manifest.mpd'), 'utf8');
    for (const folder of Object.keys(renditions)) {
      assert.ok(master.includes(`${folder}/index.m3u8`), folder);
      assert.ok(mpd.includes(`initialization="${folder}/init.mp4"`), folder);
    }
  });

  test('does what the request asks for', async () => {
    const { outputPath } = await packageInput(
      film,
      {
        segment_duration: 2,
        hls_name: 'index.m3u8',
        dash_name: 'index.mpd',
        default_language: 'de',
        iframe_playlists: true,
        tracks: [{ file: 'film.mp4', stream: 1, label: 'Described', role: 'description', name: 'described' }],
      },
      { work: join(place, 'asked') },
    );
    const master = readFileSync(join(outputPath, 'index.m3u8'), 'utf8');
    assert.match(master, /#EXT-X-I-FRAME-STREAM-INF:.*URI="video\/h264_180p\/iframes\.m3u8"/);
    assert.match(master, /LANGUAGE="de",NAME="Deutsch",DEFAULT=YES/);
    assert.match(master, /URI="audio\/described\/index\.m3u8".*NAME="Described",DEFAULT=NO.*describes-video/);
    assert.match(readFileSync(join(outputPath, 'index.mpd'), 'utf8'), /urn:mpeg:dash:role:2011" value="description"/);
    assert.equal(segmentsIn(join(outputPath, 'video/h264_180p')), 4);
  });

  test('gives players one default audio, also where its file states no language', async () => {
    const untagged = join(place, 'untagged');
    mkdirSync(untagged);
    const source = ['-i', join(film, 'film.mp4')];
    ffmpeg(untagged, source, '-map 0:v -map 0:a:0 -c copy -metadata:s:a:0 language=und film.mp4');
    ffmpeg(untagged, source, '-map 0:a:1 -c copy film.de.m4a');
    const defaultsOf = async (params: PackageParams): Promise<(string | undefined)[]> => {
      const { outputPath } = await packageInput(untagged, params);
      const master = readFileSync(join(outputPath, 'master.m3u8'), 'utf8');
      const { AUDIO: audio = [] } = M3U8Parser.parseMasterPlaylistMedia(
        master,
        'https://example.com/',
        M3U8Parser.parseMasterPlaylist(master, 'https://example.com/'),
      );
      assert.equal(audio.length, 2);
      return audio.filter((track) => track.default && track.autoselect).map(({ url }) => url);
    };
    assert.deepEqual(await defaultsOf({}), ['https://example.com/audio/und_aac/index.m3u8']);
    assert.deepEqual(await defaultsOf({ default_language: 'en' }), ['https://example.com/audio/und_aac/index.m3u8']);
    assert.deepEqual(await defaultsOf({ default_language: 'de' }), ['https://example.com/audio/de_aac/index.m3u8']);
  });

  test('leaves out a file that is named as the signed copy of another one, unless the request asks for it', async () => {
    const twice = join(place, 'twice');
    mkdirSync(twice);
    for (const name of ['film.mp4', 'film_c2pa.mp4', 'other_c2pa.mp4'])
      cpSync(join(film, 'film.mp4'), join(twice, name));
    const packaged = async (params: PackageParams): Promise<[count: number, isTold: boolean]> => {
      const { outputPath, reasons } = await packageInput(twice, params);
      return [readdirSync(join(outputPath, 'video')).length, reasons.includes('SIGNED_COPIES_LEFT_OUT')];
    };
    assert.deepEqual(await packaged({}), [2, true]);
    assert.deepEqual(await packaged({ include: ['film*'] }), [2, false]);
    assert.deepEqual(await packaged({ tracks: [{ file: 'film_c2pa.mp4', name: 'signed' }] }), [3, false]);
  });

  test('makes one film of a folder of several, which the request chooses', async () => {
    const films = join(place, 'films');
    mkdirSync(films);
    makeFilm(films, 'film.mp4');
    ffmpeg(films, ['-i', 'film.mp4'], '-t 5 -map 0:v -map 0:a:0 -c copy trailer.mp4');
    await assert.rejects(packageInput(films), { reason: 'PACKAGING_FILMS_DIFFER' });
    const { outputPath, reasons } = await packageInput(films, { include: ['trailer*'] });
    assert.deepEqual(reasons, []);
    assert.deepEqual(
      packetHashes(joinRendition(join(outputPath, 'video/h264_180p'))),
      packetHashes(join(films, 'trailer.mp4'), 'v:0'),
    );
    await assert.rejects(packageInput(films, { include: ['film.mp4', 'nothing*'] }), { reason: 'PATTERN_NO_MATCH' });
    await assert.rejects(packageInput(films, {}, { sign: true }), { reason: 'PACKAGING_FILMS_DIFFER' });
    assert.deepEqual((await packageInput(films, { include: ['trailer*'] }, { sign: true })).reasons, []);
  });

  test('signs what it makes of Matroska, whose times are whole milliseconds', async () => {
    const matroska = join(place, 'matroska');
    mkdirSync(matroska);
    const pictures = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=24000/1001:d=6'];
    ffmpeg(matroska, pictures, '-c:v libx264 -preset veryfast -bf 2 -g 24 -sc_threshold 0 -pix_fmt yuv420p film.mkv');
    const { outputPath } = await packageInput(matroska, { segment_duration: 2 }, { sign: true });
    const mpd = readFileSync(join(outputPath, 'manifest.mpd'), 'utf8');
    const times = [...mpd.matchAll(/<S t="(\d+)" d="(\d+)"/g)].map(([, t, d]) => [Number(t), Number(d)] as const);
    assert.ok(
      times.some(([t], index) => t < (times[index - 1]?.[0] ?? 0) + (times[index - 1]?.[1] ?? 0)),
      'a segment begins before the end of the one above it',
    );
  });

  test('makes HLS alone, or DASH alone', async () => {
    const hls = (await packageInput(film, { formats: ['hls'] }, { work: join(place, 'hls') })).outputPath;
    const dash = (await packageInput(film, { formats: ['dash'] }, { work: join(place, 'dash') })).outputPath;
    assert.deepEqual(extensionsIn(hls), ['m3u8', 'm4s', 'mp4', 'vtt']);
    assert.deepEqual(extensionsIn(dash), ['m4s', 'mp4', 'mpd']);
  });

  test('gives renditions of one film one set of boundaries, and warns where they have none', async () => {
    const ladder = join(place, 'ladder');
    mkdirSync(ladder);
    makeFilm(ladder, 'large.mp4', '640x360');
    makeFilm(ladder, 'small.mp4', '320x180');
    const even = await packageInput(ladder);
    assert.ok(!even.reasons.includes('KEY_FRAMES_NOT_ALIGNED'), even.reasons.join());
    ffmpeg(
      place,
      ['-i', join(ladder, 'large.mp4')],
      `-map 0:v -c:v libx264 -g 31 -s 160x90 ${join(ladder, 'odd.mp4')}`,
    );
    const uneven = await packageInput(ladder);
    assert.equal(uneven.reasons.filter((reason) => reason === 'KEY_FRAMES_NOT_ALIGNED').length, 1);
  });
});

function segmentsIn(folder: string): number {
  return readdirSync(folder).filter((name) => name.endsWith('.m4s')).length;
}

function extensionsIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return [...new Set(entries.map(({ name }) => name.slice(name.lastIndexOf('.') + 1)))].sort();
}
