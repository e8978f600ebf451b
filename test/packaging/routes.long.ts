import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { frameHashes, joinRendition, packetHashes, sampleHash } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm, SRT, turnFilm } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const film = join(place, 'film.mp4');

before(() => {
  makeFilm(place);
  writeFileSync(join(place, 'film.srt'), SRT);
});

/** A folder with one file that ffmpeg makes from the film, with the options given. */
function folderWith(file: string, options: string, inputs: readonly string[] = []): string {
  const folder = join(place, file.replaceAll('.', '-'));
  mkdirSync(folder, { recursive: true });
  ffmpeg(place, ['-i', film, ...inputs], `${options} ${join(folder, file)}`);
  return folder;
}

/** Sources that the packager reads itself, and sources that it does not, by what has to be the same in the output. */
const SAME_PACKETS: readonly {
  file: string;
  options: string;
  renditions: Record<string, string>;
  source?: string[];
}[] = [
  {
    file: 'film.mov',
    options: '-map 0:v -map 0:a:0 -c copy',
    renditions: { 'video/h264_180p': 'v:0', 'audio/und_aac': 'a:0' },
  },
  {
    file: 'film.mkv',
    options: '-map 0 -c copy',
    renditions: { 'video/h264_180p': 'v:0', 'audio/en_aac': 'a:0', 'audio/de_aac': 'a:1' },
  },
  {
    file: 'hevc.mkv',
    options: '-map 0:v -c:v libx265 -preset ultrafast -x265-params log-level=error',
    renditions: { 'video/hevc_180p': 'v:0' },
  },
  {
    file: 'hevc.mp4',
    options: '-map 0:v -c:v libx265 -preset ultrafast -x265-params log-level=error -tag:v hvc1',
    renditions: { 'video/hevc_180p': 'v:0' },
  },
  {
    file: 'film.webm',
    options: '-map 0:v -map 0:a:0 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus',
    renditions: { 'video/vp9_180p': 'v:0', 'audio/en_opus': 'a:0' },
  },
  { file: 'talk.mp3', options: '-map 0:a:0 -c:a libmp3lame', renditions: { 'audio/und_mp3': 'a:0' } },
  { file: 'talk.flac', options: '-map 0:a:0 -c:a flac', renditions: { 'audio/und_flac': 'a:0' } },
  { file: 'talk.opus', options: '-map 0:a:0 -c:a libopus', renditions: { 'audio/und_opus': 'a:0' } },
  { file: 'talk.ac3', options: '-map 0:a:0 -c:a ac3', renditions: { 'audio/und_ac3': 'a:0' } },
  {
    file: 'talk.aac',
    options: '-map 0:a:0 -c copy',
    renditions: { 'audio/und_aac': 'a:0' },
    source: ['-bsf:a', 'aac_adtstoasc'],
  },
  { file: 'eac3.ts', options: '-map 0:a:0 -c:a eac3', renditions: { 'audio/und_eac3': 'a:0' } },
  { file: 'dvb.ts', options: '-map 0:a:0 -c:a ac3 -mpegts_flags system_b', renditions: { 'audio/und_ac3': 'a:0' } },
  { file: 'talk.m4a', options: '-map 0:a:0 -c copy', renditions: { 'audio/en_aac': 'a:0' } },
  {
    file: 'mixed.mp4',
    options: '-map 0 -c:v copy -c:a:0 copy -c:a:1 libmp3lame',
    renditions: { 'video/h264_180p': 'v:0', 'audio/en_aac': 'a:0', 'audio/de_mp3': 'a:1' },
  },
  {
    file: 'fragmented.mp4',
    options: '-map 0 -c copy -movflags +frag_keyframe+empty_moov',
    renditions: { 'video/h264_180p': 'v:0', 'audio/de_aac': 'a:1' },
  },
];

/** Marks a film of HEVC as Dolby Vision, profile 8.4: a box more in its sample entry. Its movie box lies at its end. */
function withDolbyVision(film: Buffer): Buffer {
  // Version 1.0, profile 8, level 4, with metadata and a base layer that is HLG.
  const config = Buffer.alloc(32);
  config.writeUInt32BE(32);
  config.write('dvvC\x01\x00\x10\x25\x40', 4, 'latin1');
  const grown = Buffer.from(film);
  for (const type of ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', 'hev1']) {
    const at = grown.indexOf(type, grown.lastIndexOf('moov')) - 4;
    grown.writeUInt32BE(grown.readUInt32BE(at) + config.length, at);
  }
  const entry = grown.indexOf('hev1', grown.lastIndexOf('moov')) - 4;
  const end = entry + grown.readUInt32BE(entry) - config.length;
  return Buffer.concat([grown.subarray(0, end), config, grown.subarray(end)]);
}

describe('a file reaches the packager', () => {
  for (const { file, options, renditions, source = [] } of SAME_PACKETS) {
    test(`with the same packets from ${file}`, async () => {
      const folder = folderWith(file, options);
      const { outputPath, reasons } = await packageInput(folder);
      for (const [rendition, stream] of Object.entries(renditions)) {
        const packets = packetHashes(joinRendition(join(outputPath, rendition)));
        assert.deepEqual(packets, packetHashes(join(folder, file), stream, source), rendition);
      }
      // English as AAC and German as MP3 are worth a warning.
      assert.deepEqual(reasons, file === 'mixed.mp4' ? ['LANGUAGES_SPLIT_BY_CODEC'] : []);
    });
  }

  test('with the same pictures from a transport stream', async () => {
    const folder = folderWith('film.ts', '-map 0:v -map 0:a:0 -c copy');
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(frameHashes(joinRendition(join(outputPath, 'video/h264_180p'))), frameHashes(film, 'v:0'));
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'audio/und_aac'))), packetHashes(film, 'a:0'));
    assert.deepEqual(reasons, []);
  });

  test('with every stream of a transport stream that lies beside other files, in time with them', async () => {
    const folder = folderWith('film.ts', '-map 0 -c copy');
    ffmpeg(place, ['-i', film], `-map 0:a:0 -c copy ${join(folder, 'talk.fr.m4a')}`);
    const { outputPath } = await packageInput(folder);
    assert.deepEqual(frameHashes(joinRendition(join(outputPath, 'video/h264_180p'))), frameHashes(film, 'v:0'));
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'audio/und_aac_2'))), packetHashes(film, 'a:1'));
  });

  test('with the same samples, as FLAC, from raw ones', async () => {
    for (const [file, codec, language] of [
      ['talk.wav', 'pcm_s16le', 'und'],
      ['deep.wav', 'pcm_s24le', 'und'],
      ['packed.m4a', 'alac', 'en'],
      ['phone.wav', 'pcm_alaw', 'und'],
    ] as const) {
      const folder = folderWith(file, `-map 0:a:0 -c:a ${codec}`);
      const { outputPath } = await packageInput(folder);
      const joined = joinRendition(join(outputPath, `audio/${language}_flac`));
      assert.equal(sampleHash(joined), sampleHash(join(folder, file)), file);
    }
  });

  test('unless its samples are wider than players take them, which is told; of raw ones the upper 24 bits are kept', async () => {
    const folder = folderWith('wide.wav', '-map 0:a:0 -c:a pcm_s32le -bitexact');
    execFileSync('flac', ['--silent', '-o', join(folder, 'wide.de.flac'), join(folder, 'wide.wav')]);
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(reasons, ['TRACK_LEFT_OUT', 'SAMPLES_NARROWED']);
    assert.ok(joinRendition(join(outputPath, 'audio/und_flac')).length > 0);
  });

  test('although an edit list starts the film between key frames, with sound and picture in time', async () => {
    const folder = join(place, 'edit-list');
    mkdirSync(folder);
    ffmpeg(
      place,
      ['-i', film],
      '-map 0:v -map 0:a:0 -c:v libx264 -preset ultrafast -bf 2 -g 48 -c:a copy b-frames.mp4',
    );
    ffmpeg(place, ['-ss', '3.3', '-i', 'b-frames.mp4'], `-c copy ${join(folder, 'cut.mp4')}`);
    const { outputPath } = await packageInput(folder);
    const packets = packetHashes(joinRendition(join(outputPath, 'video/h264_180p')));
    assert.deepEqual(packets, packetHashes(join(folder, 'cut.mp4'), 'v:0', [], ['-ignore_editlist', '1']));
  });

  test('from its first key frame on where it is a recording that starts before, which is told', async () => {
    const folder = join(place, 'recording');
    mkdirSync(folder);
    ffmpeg(place, ['-i', film], '-map 0:v -map 0:a:0 -c:v libx264 -preset ultrafast -g 48 -c:a copy whole.ts');
    const whole = readFileSync(join(place, 'whole.ts'));
    writeFileSync(join(folder, 'rec.ts'), whole.subarray(188 * Math.floor((whole.length * 0.1) / 188)));
    const { outputPath, reasons } = await packageInput(folder);
    const pictures = frameHashes(join(place, 'whole.ts'), 'v:0').slice(48);
    assert.deepEqual(frameHashes(joinRendition(join(outputPath, 'video/h264_180p'))), pictures);
    assert.equal(reasons.filter((reason) => reason === 'START_NOT_DECODABLE').length, 1, reasons.join());
  });

  test('with a picture that is to be turned, which the init segments say too', async () => {
    const folder = folderWith('turned.mp4', '-map 0:v -c copy');
    turnFilm(join(folder, 'turned.mp4'));
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(reasons, ['PICTURE_ROTATED']);
    const init = join(outputPath, 'video/h264_180p/init.mp4');
    const shown = ['-v', 'error', '-show_entries', 'stream_side_data=rotation', '-of', 'csv=p=0'];
    const turned = execFileSync('ffprobe', [...shown, init]);
    assert.equal(turned.toString().trim(), '-90', 'ffprobe counts the other way round');
  });

  test('by way of ffmpeg where the packager refuses it against expectation, which is told', async () => {
    const folder = join(place, 'refused');
    mkdirSync(folder);
    // A reference to data of QuickTime's kind, which some cameras write into their MP4.
    const bytes = readFileSync(film).toString('latin1').replaceAll('url \0\0\0\x01', 'alis\0\0\0\x01');
    writeFileSync(join(folder, 'camera.mp4'), bytes, 'latin1');
    const { outputPath, reasons } = await packageInput(folder);
    const video = joinRendition(join(outputPath, 'video/h264_180p'));
    assert.deepEqual(packetHashes(video), packetHashes(film, 'v:0'));
    assert.deepEqual(reasons, ['PACKAGER_BYPASSED']);
  });

  test('of Dolby Vision over HEVC, as one rendition in each playlist', async () => {
    const folder = folderWith('phone.mp4', '-map 0:v -c:v libx265 -preset ultrafast -x265-params log-level=error');
    const path = join(folder, 'phone.mp4');
    writeFileSync(path, withDolbyVision(readFileSync(path)));
    const { outputPath } = await packageInput(folder);
    const mpd = readFileSync(join(outputPath, 'manifest.mpd'), 'utf8');
    assert.equal(mpd.match(/<Representation\b/g)?.length, 1);
    assert.match(readFileSync(join(outputPath, 'master.m3u8'), 'utf8'), /SUPPLEMENTAL-CODECS="dvh1/);
  });

  test('as WebVTT from SubRip, which ends with the film', async () => {
    const folder = join(place, 'subtitles');
    mkdirSync(folder);
    copyFileSync(film, join(folder, 'film.mp4'));
    writeFileSync(join(folder, 'film.pt-BR.forced.srt'), SRT);
    const { outputPath, reasons } = await packageInput(folder);
    const first = readFileSync(join(outputPath, 'text/pt-BR/00001.vtt'), 'utf8');
    const last = readFileSync(join(outputPath, 'text/pt-BR/00002.vtt'), 'utf8');
    assert.match(first, /00:00:01\.000 --> 00:00:03\.000.*\nGood <i>evening<\/i>/);
    assert.match(last, /00:00:06\.500 --> 00:00:08\.000/);
    assert.doesNotMatch(last, /never seen/);
    assert.match(readFileSync(join(outputPath, 'master.m3u8'), 'utf8'), /TYPE=SUBTITLES.*LANGUAGE="pt-BR".*FORCED=YES/);
    assert.deepEqual(reasons, ['SUBTITLES_CUT']);
  });

  test('in time with a film in a transport stream, whose time does not start at zero', async () => {
    const folder = folderWith('subtitled.ts', '-map 0:v -map 0:a:0 -c copy');
    writeFileSync(join(folder, 'subtitled.fr.srt'), SRT);
    const { outputPath } = await packageInput(folder);
    const mpd = readFileSync(join(outputPath, 'manifest.mpd'), 'utf8');
    const [, offsetMs = '0'] = /contentType="text".*? presentationTimeOffset="(\d+)"/s.exec(mpd) ?? [];
    assert.ok(Number(offsetMs) < 100, 'the film starts at zero, but for the priming of its sound');
    assert.match(readFileSync(join(outputPath, 'text/fr/00001.vtt'), 'utf8'), /00:00:01\.000 --> 00:00:03\.000/);
  });

  test('as WebVTT from the text track of a film', async () => {
    const folder = folderWith('film.mp4', '-map 0:v -map 1 -c:v copy -c:s mov_text -metadata:s:s:0 language=fra', [
      '-i',
      join(place, 'film.srt'),
    ]);
    const { outputPath } = await packageInput(folder);
    assert.match(readFileSync(join(outputPath, 'text/fr/00001.vtt'), 'utf8'), /Good/);
  });

  test('as WebVTT from the subtitles of Matroska, and attachments are told of', async () => {
    const folder = join(place, 'matroska-subtitles');
    mkdirSync(folder);
    const inputs = ['-i', film, '-i', join(place, 'film.srt'), '-attach', join(place, 'film.srt')];
    const options =
      '-map 0:v -map 1 -c:v copy -c:s subrip -metadata:s:s:0 language=spa -metadata:s:t mimetype=text/plain';
    ffmpeg(place, inputs, `${options} ${join(folder, 'film.mkv')}`);
    const { outputPath, reasons } = await packageInput(folder);
    assert.match(readFileSync(join(outputPath, 'text/es/00001.vtt'), 'utf8'), /Good/);
    assert.equal(reasons.filter((reason) => reason === 'TRACK_LEFT_OUT').length, 1, reasons.join());
  });

  test('although a transport stream holds other sound, which is told of', async () => {
    const folder = join(place, 'broadcast');
    mkdirSync(folder);
    const sound = ['-f', 'lavfi', '-i', 'sine=r=48000:d=8'];
    ffmpeg(
      place,
      [...sound, '-i', film],
      `-map 0 -map 1:v -map 1:a:1 -c copy -c:a:0 dca -strict -2 -ac 2 ${join(folder, 'film.ts')}`,
    );
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(frameHashes(joinRendition(join(outputPath, 'video/h264_180p'))), frameHashes(film, 'v:0'));
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'audio/und_aac'))), packetHashes(film, 'a:1'));
    assert.ok(reasons.includes('TRACK_LEFT_OUT'), reasons.join());
  });
});
