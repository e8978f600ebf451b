import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm, SRT } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const film = join(place, 'film.mp4');
let count = 0;

/** ffmpeg's options for an encryption that nobody keeps secret. */
const KEY = `-encryption_key ${'76'.repeat(16)} -encryption_kid ${'a7'.repeat(16)}`;

before(() => makeFilm(place));

/** A new folder with the files given, each by its bytes or by what is done to its path. */
function folderOf(files: Readonly<Record<string, string | Buffer | ((path: string) => void)>>): string {
  const folder = join(place, `case-${count++}`);
  mkdirSync(folder);
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    if (typeof content === 'function') content(path);
    else writeFileSync(path, content);
  }
  return folder;
}

const theFilm = (path: string): void => copyFileSync(film, path);

/** Fails with the reason, and leaves neither an output nor anything in scratch. */
async function refuses(reason: string, folder: string, params: PackageParams = {}): Promise<AppError> {
  const work = `${folder}-work`;
  const error = await packageInput(folder, params, { work }).then(
    () => assert.fail(`${reason} was expected`),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AppError, String(error));
  assert.equal(error.reason, reason, error.message);
  assert.deepEqual(existsSync(join(work, 'output')) ? readdirSync(join(work, 'output')) : [], [], 'no output');
  assert.deepEqual(existsSync(join(work, 'scratch')) ? readdirSync(join(work, 'scratch')) : [], [], 'no scratch');
  return error;
}

describe('a folder that cannot be packaged', () => {
  test('is empty', async () => {
    await refuses('FOLDER_EMPTY', folderOf({}));
  });

  test('holds no media, and each file is told of', async () => {
    const { details } = await refuses(
      'PACKAGING_NO_MEDIA',
      folderOf({ 'a.txt': 'text', 'b.jpg': Buffer.from('ffd8ffe0', 'hex') }),
    );
    assert.deepEqual(
      (details as { problems: { file: string }[] }).problems.map(({ file }) => file),
      ['a.txt', 'b.jpg'],
    );
  });

  test('holds subtitles alone', async () => {
    const { details } = await refuses('PACKAGING_NO_MEDIA', folderOf({ 'film.srt': SRT }));
    assert.equal((details as { problems: unknown[] }).problems.length, 1);
  });

  test('holds sound of which no packet can be read', async () => {
    const folder = folderOf({});
    ffmpeg(place, ['-i', film], `-map 0:a:0 -c:a flac ${join(folder, 'talk.flac')}`);
    const path = join(folder, 'talk.flac');
    const bytes = readFileSync(path);
    // All frames are gone, and its header says nothing of how many there were.
    bytes.fill(0, bytes.indexOf('fff8', 42, 'hex'));
    bytes.fill(0, 22, 26);
    bytes[21] = (bytes[21] as number) & 0xf0;
    writeFileSync(path, bytes);
    await refuses('PACKAGED_CUT_SHORT', folder);
  });

  test('holds only what players do not take', async () => {
    const folder = folderOf({});
    ffmpeg(place, ['-i', film], `-map 0:v -c:v mpeg4 ${join(folder, 'film.avi')}`);
    await refuses('PACKAGING_FILES_BROKEN', folder);
    const old = folderOf({});
    ffmpeg(place, ['-i', film], `-map 0:v -c:v mpeg4 ${join(old, 'film.mp4')}`);
    await refuses('PACKAGING_NO_MEDIA', old);
    const speech = folderOf({});
    ffmpeg(place, ['-i', film], `-map 0:a:0 -ar 24000 -c:a libmp3lame ${join(speech, 'talk.mp3')}`);
    await refuses('PACKAGING_NO_MEDIA', speech);
  });

  const broken: Readonly<Record<string, (path: string) => void>> = {
    'is empty': (path) => writeFileSync(path, ''),
    'is text by another name': (path) => writeFileSync(path, 'This is no film.\n'.repeat(100)),
    'has no moov': (path) => {
      const bytes = readFileSync(film);
      const moov = bytes.indexOf('moov');
      bytes.write('free', moov, 'latin1');
      writeFileSync(path, bytes);
    },
    'is cut short': (path) => {
      theFilm(path);
      truncateSync(path, Math.floor(readFileSync(film).length * 0.6));
    },
    'is cut short before its moov': (path) => {
      ffmpeg(place, ['-i', film], `-map 0 -c copy -f mp4 ${path}`);
      truncateSync(path, readFileSync(path).length >> 1);
    },
    'is MXF': (path) =>
      ffmpeg(place, ['-i', film], `-map 0:v -map 0:a:0 -c:v mpeg2video -c:a pcm_s16le -f mxf ${path}`),
    'is AIFF': (path) => ffmpeg(place, ['-i', film], `-map 0:a:0 -c:a pcm_s16be -f aiff ${path}`),
    'is AVI': (path) => ffmpeg(place, ['-i', film], `-map 0:v -c copy -f avi ${path}`),
    'is encrypted': (path) =>
      ffmpeg(place, ['-i', film], `-map 0 -c copy -encryption_scheme cenc-aes-ctr ${KEY} -f mp4 ${path}`),
    'is noise after a header': (path) =>
      writeFileSync(path, Buffer.concat([readFileSync(film).subarray(0, 600), Buffer.alloc(5000, 0x5a)])),
  };
  for (const [what, make] of Object.entries(broken)) {
    test(`holds a file that ${what}, beside a good one`, async () => {
      const { details } = await refuses('PACKAGING_FILES_BROKEN', folderOf({ 'film.mp4': theFilm, 'other.mp4': make }));
      assert.deepEqual(
        (details as { problems: { file: string }[] }).problems.map(({ file }) => file),
        ['other.mp4'],
      );
    });
  }

  test('holds WAVE with 64-bit sizes that is not read (BW64), which is not passed over, whatever its name', async () => {
    const wave64 = (path: string): void => {
      ffmpeg(place, ['-i', film], `-map 0:a:0 -rf64 always -f wav ${path}`);
      const bytes = readFileSync(path);
      bytes.write('BW64', 'latin1');
      writeFileSync(path, bytes);
    };
    const { details } = await refuses('PACKAGING_FILES_BROKEN', folderOf({ 'film.mp4': theFilm, sound: wave64 }));
    assert.deepEqual(
      (details as { problems: { file: string }[] }).problems.map(({ file }) => file),
      ['sound'],
    );
  });

  for (const [file, options, reason] of [
    ['film.mkv', '-map 0 -c copy', 'PACKAGING_FILES_BROKEN'],
    ['film.webm', '-map 0:a:0 -c libopus', 'PACKAGING_FILES_BROKEN'],
    ['talk.wav', '-map 0:a:0', 'PACKAGING_FILES_BROKEN'],
    ['talk.flac', '-map 0:a:0', 'PACKAGED_CUT_SHORT'],
    ['talk.mp3', '-map 0:a:0', 'PACKAGED_CUT_SHORT'],
  ] as const) {
    test(`holds half of ${file}, beside a good file`, async () => {
      const folder = folderOf({ 'good.mp4': theFilm });
      const path = join(folder, file);
      ffmpeg(place, ['-i', film], `${options} ${path}`);
      truncateSync(path, readFileSync(path).length >> 1);
      await refuses(reason, folder);
    });
  }

  test('holds playlists that are disguised as media, and nothing that they name is read', async () => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked += 1;
      response.end();
    }).listen(0, '127.0.0.1');
    try {
      await new Promise((resolve) => server.once('listening', resolve));
      const { port } = server.address() as { port: number };
      const playlist = (target: string): string =>
        `#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n${target}\n#EXT-X-ENDLIST\n`;
      for (const name of ['film.mp4', 'film.mov', 'film.mkv', 'film.ts', 'talk.mp3', 'talk.aac', 'film.srt']) {
        const folder = folderOf({ 'good.mp4': theFilm, [name]: playlist(`http://127.0.0.1:${port}/x.ts`) });
        if (name === 'film.srt') assert.equal((await packageInput(folder)).reasons.length, 1);
        else await refuses('PACKAGING_FILES_BROKEN', folder);
      }
      await refuses('PLAYLIST_LEAVES_FOLDER', folderOf({ 'index.m3u8': playlist('file:///etc/hostname') }));
      await refuses('PLAYLIST_LEAVES_FOLDER', folderOf({ 'index.m3u8': playlist(`http://127.0.0.1:${port}/x.ts`) }));
      await refuses('PLAYLIST_LEAVES_FOLDER', folderOf({ 'index.m3u8': playlist('../film.mp4') }));
      assert.equal(asked, 0);
    } finally {
      server.close();
    }
  });

  test('holds a FIFO, a device, or a link that leads out of it', async () => {
    const fifo = (path: string): void => void execFileSync('mkfifo', [path]);
    await refuses('FOLDER_ENTRY_REFUSED', folderOf({ 'film.mp4': theFilm, 'pipe.mp4': fifo }));
    await refuses(
      'FOLDER_ENTRY_REFUSED',
      folderOf({ 'film.mp4': theFilm, 'out.mp4': (path) => symlinkSync(film, path) }),
    );
    await refuses(
      'FOLDER_ENTRY_REFUSED',
      folderOf({ 'film.mp4': theFilm, 'zero.mp4': (path) => symlinkSync('/dev/zero', path) }),
    );
  });

  test('has a track that the request names and nobody finds', async () => {
    const folder = folderOf({ 'film.mp4': theFilm });
    await refuses('PACKAGING_TRACK_UNKNOWN', folder, { tracks: [{ file: 'other.mp4', language: 'en' }] });
    await refuses('PACKAGING_TRACK_UNKNOWN', folder, { tracks: [{ file: 'film.mp4', stream: 3, language: 'en' }] });
  });

  test('needs ffmpeg, which is not installed; what does not need it is packaged all the same', async () => {
    const folder = folderOf({ 'good.mp4': theFilm });
    ffmpeg(place, ['-i', film], `-map 0:v -c copy ${join(folder, 'film.mkv')}`);
    const path = process.env['PATH'] ?? '';
    process.env['PATH'] = folder;
    try {
      const { details } = await refuses('PACKAGING_FFMPEG_MISSING', folder);
      assert.deepEqual(details, { files: ['film.mkv'] });
      await packageInput(folderOf({ 'film.mp4': theFilm, 'film.fr.srt': SRT }));
    } finally {
      process.env['PATH'] = path;
    }
  });

  test('would give a warning, and the request is strict', async () => {
    await refuses('PACKAGING_WARNED', folderOf({ 'film.mp4': theFilm, 'notes.txt': 'text' }), { strict: true });
  });
});

describe('a folder that can be packaged', () => {
  const names = [
    'a, b=c.mp4',
    '-i.mp4',
    'it\'s "quoted".mp4',
    'Überträger ß 映画.mp4',
    'two  spaces .mp4',
    '$(touch x);`y`.mp4',
    'percent%20#?.mp4',
  ];
  for (const name of names) {
    test(`has a file by the name ${name}`, async () => {
      const folder = folderOf({ [name]: theFilm });
      const { outputPath } = await packageInput(folder);
      assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'video/h264_180p'))), packetHashes(film, 'v:0'));
    });
  }

  test('holds subtitles of a single cue that is longer than the packager looks ahead', async () => {
    const text = `${'<c>'.repeat(1_400_000)}text`;
    const vtt = `WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n${text}\n`;
    const { outputPath } = await packageInput(folderOf({ 'film.mp4': theFilm, 'film.en.vtt': vtt }));
    assert.ok(readFileSync(join(outputPath, 'text/en/00001.vtt'), 'utf8').includes('text'));
  });

  test('lies at a path with commas and spaces', async () => {
    const folder = join(place, 'one, two =three');
    mkdirSync(folder);
    theFilm(join(folder, 'film.mp4'));
    const { outputPath } = await packageInput(folder);
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'video/h264_180p'))), packetHashes(film, 'v:0'));
  });

  test('holds 5,000 files that are none, and says so in one sentence', async () => {
    const files = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`note-${index}.txt`, 'text']));
    const { reasons } = await packageInput(folderOf({ ...files, 'film.mp4': theFilm }));
    assert.deepEqual(reasons, ['FILES_NOT_MEDIA']);
  });

  test('holds what is left out, and every piece of it is told of', async () => {
    const folder = folderOf({
      'cover.jpg': Buffer.from('ffd8ffe0', 'hex'),
      '._film.mp4': 'x',
      '.DS_Store': 'x',
      'talk.oga': (path) => ffmpeg(place, ['-i', film], `-map 0:a:0 -c:a flac ${path}`),
      notes: Buffer.from('\ufefftext', 'utf16le'),
    });
    ffmpeg(
      place,
      ['-i', film, '-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=24:d=8', '-i', film],
      `-map 0:v -map 1:v -map 0:a:0 -map 2:a:1 -c:v:0 copy -c:v:1 libx264 -c:a:0 copy -c:a:1 vorbis -strict -2 -ac 2 ${join(folder, 'film.mkv')}`,
    );
    const { warnings } = await packageInput(folder);
    assert.equal(warnings.filter(({ message }) => message.includes('second video track')).length, 1);
    assert.equal(warnings.filter(({ message }) => message.includes('Vorbis')).length, 1);
    assert.equal(warnings.filter(({ message }) => message.includes('cover.jpg')).length, 1);
    assert.equal(warnings.filter(({ message }) => message.includes('talk.oga')).length, 1, 'FLAC in Ogg');
  });
});
