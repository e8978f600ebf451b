import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { frameHashes, joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm, SRT } from '../support/media/make-film.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const film = join(place, 'film.mp4');

/** A folder in which ffmpeg made a publication of the film. */
function publicationOf(name: string, options: string): string {
  const folder = join(place, name);
  mkdirSync(folder);
  ffmpeg(folder, ['-i', film], options);
  return folder;
}

let cmaf: string;
let transport: string;

before(async () => {
  makeFilm(place);
  const source = join(place, 'source');
  mkdirSync(source);
  cpSync(film, join(source, 'film.mp4'));
  writeFileSync(join(source, 'film.fr.srt'), SRT);
  cmaf = (await packageInput(source, { default_language: 'de' })).outputPath;
  transport = publicationOf(
    'transport',
    '-map 0:v -map 0:a:0 -c copy -f hls -hls_time 2 -hls_playlist_type vod index.m3u8',
  );
});

/** Every file of a folder, by its path. */
function filesIn(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name)).sort();
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'latin1')]));
}

function assertFilmIn(outputPath: string, audio: string): void {
  assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'video/h264_180p'))), packetHashes(film, 'v:0'));
  assert.deepEqual(packetHashes(joinRendition(join(outputPath, audio))), packetHashes(film, 'a:0'));
}

describe('a folder that is a publication', () => {
  test('of CMAF is carried through as it is, and that is told', async () => {
    const { outputPath, reasons } = await packageInput(cmaf, {}, { work: join(place, 'carry-auto') });
    assert.deepEqual(filesIn(outputPath), filesIn(cmaf));
    assert.deepEqual(reasons, ['PUBLICATION_FOUND']);
    await assert.rejects(packageInput(cmaf, { strict: true }, { work: join(place, 'carry-strict') }), {
      reason: 'PACKAGING_WARNED',
    });
  });

  test('of CMAF is carried through without a warning where the request asks for that', async () => {
    const asked = { existing: 'copy', strict: true } as const;
    const { outputPath, reasons } = await packageInput(cmaf, asked, { work: join(place, 'carry-asked') });
    assert.deepEqual(filesIn(outputPath), filesIn(cmaf));
    assert.deepEqual(reasons, []);
  });

  test('of CMAF is made anew when that is asked for, with its languages, its default and its subtitles', async () => {
    const { outputPath } = await packageInput(
      cmaf,
      { existing: 'repackage', segment_duration: 2 },
      { work: join(place, 'anew') },
    );
    assertFilmIn(outputPath, 'audio/en_aac');
    const master = readFileSync(join(outputPath, 'master.m3u8'), 'utf8');
    assert.match(master, /LANGUAGE="de".*DEFAULT=YES/);
    assert.match(master, /TYPE=SUBTITLES.*LANGUAGE="fr"/);
    assert.equal(readdirSync(join(outputPath, 'video/h264_180p')).filter((name) => name.endsWith('.m4s')).length, 4);
    assert.match(readFileSync(join(outputPath, 'text/fr/00001.vtt'), 'utf8'), /Good <i>evening<\/i>/);
  });

  test('of transport streams is made anew', async () => {
    const { outputPath } = await packageInput(transport, {}, { work: join(place, 'from-ts') });
    assert.deepEqual(frameHashes(joinRendition(join(outputPath, 'video/h264_180p'))), frameHashes(film, 'v:0'));
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'audio/und_aac'))), packetHashes(film, 'a:0'));
  });

  test('of byte ranges in one file is made anew', async () => {
    const folder = publicationOf(
      'ranges',
      '-map 0:v -map 0:a:0 -c copy -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 -hls_flags single_file -hls_segment_filename media.mp4 index.m3u8',
    );
    assertFilmIn((await packageInput(folder)).outputPath, 'audio/en_aac');
  });

  test('of byte ranges the last of which counts one byte too many is made anew, and that is told', async () => {
    const folder = publicationOf(
      'one-too-many',
      '-map 0:v -map 0:a:0 -c copy -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 -hls_flags single_file index.m3u8',
    );
    const path = join(folder, 'index.m3u8');
    const longer = (_: string, tag: string, length: string, rest: string) => `${tag}${Number(length) + 1}${rest}`;
    const playlist = readFileSync(path, 'utf8');
    writeFileSync(path, playlist.replace(/(#EXT-X-BYTERANGE:)(\d+)(@\d+\n.*\n#EXT-X-END)/, longer));
    const { outputPath, reasons } = await packageInput(folder);
    assert.ok(reasons.includes('BYTE_RANGE_SHORTENED'), reasons.join());
    assertFilmIn(outputPath, 'audio/en_aac');
  });

  test('of segments of several chunks is made anew', async () => {
    const folder = publicationOf(
      'chunked',
      '-map 0:v -map 0:a:0 -c copy -f dash -seg_duration 2 -streaming 1 -frag_type duration -frag_duration 0.5 manifest.mpd',
    );
    const { outputPath, warnings } = await packageInput(folder);
    assert.partialDeepStrictEqual(warnings, [{ details: { segments: 'segments of several chunks' } }]);
    assertFilmIn(outputPath, 'audio/en_aac');
  });

  test('by DASH is made anew without what is beside the film, and with subtitles in a file of their own', async () => {
    const folder = publicationOf('asides', '-map 0:v -map 0:a:0 -c copy -f dash -seg_duration 2 manifest.mpd');
    writeFileSync(join(folder, 'fr.vtt'), 'WEBVTT\n\n00:01.000 --> 00:02.000\nbonsoir\n');
    writeFileSync(join(folder, 'es.xml'), '<tt><body><p begin="1s" end="2s">buenas noches</p></body></tt>');
    writeFileSync(join(folder, 'tiles_1.jpg'), 'not really a picture');
    const mpd = join(folder, 'manifest.mpd');
    const text = readFileSync(mpd, 'utf8');
    const [video = ''] = /<AdaptationSet[\s\S]*?<\/AdaptationSet>/.exec(text) ?? [];
    const property = '<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="0"/>';
    const trickPlay = video.replace('id="0"', 'id="8"').replace(/(<Representation )/, `${property}$1`);
    const pictures = `<AdaptationSet mimeType="image/jpeg"><SegmentTemplate media="tiles_$Number$.jpg" duration="8" startNumber="1"/><Representation id="tiles" bandwidth="1" width="320" height="180"/></AdaptationSet>`;
    const subtitles = `<AdaptationSet mimeType="text/vtt" lang="fr"><Representation id="fr" bandwidth="1"><BaseURL>fr.vtt</BaseURL></Representation></AdaptationSet><AdaptationSet mimeType="application/ttml+xml" lang="es"><Representation id="es" bandwidth="1"><BaseURL>es.xml</BaseURL></Representation></AdaptationSet>`;
    writeFileSync(
      mpd,
      text.replace('</Period>', () => `${trickPlay}${pictures}${subtitles}</Period>`),
    );
    const { outputPath, reasons } = await packageInput(folder, { existing: 'repackage' });
    assertFilmIn(outputPath, 'audio/en_aac');
    assert.deepEqual(readdirSync(join(outputPath, 'video')), ['h264_180p']);
    assert.match(readFileSync(join(outputPath, 'text/fr/00001.vtt'), 'utf8'), /bonsoir/);
    assert.match(readFileSync(join(outputPath, 'text/es/00001.vtt'), 'utf8'), /buenas noches/);
    assert.equal(reasons.filter((reason) => reason === 'AUXILIARY_RENDITIONS_LEFT_OUT').length, 1, reasons.join());
    assert.ok(!reasons.includes('FILES_NOT_IN_PLAYLISTS'), reasons.join());
  });

  test('of segments that are named in parts, too, is made anew', async () => {
    const folder = join(place, 'low-latency');
    cpSync(cmaf, folder, { recursive: true });
    const playlist = join(folder, 'video/h264_180p/index.m3u8');
    const text = readFileSync(playlist, 'utf8');
    writeFileSync(
      playlist,
      text.replaceAll('#EXTINF', '#EXT-X-PART:DURATION=1,URI="00001.m4s",BYTERANGE="100@0"\n#EXTINF'),
    );
    const { outputPath, warnings } = await packageInput(folder);
    assert.partialDeepStrictEqual(warnings, [{ details: { segments: 'segments of several chunks' } }]);
    assertFilmIn(outputPath, 'audio/en_aac');
    assert.doesNotMatch(readFileSync(join(outputPath, 'video/h264_180p/index.m3u8'), 'utf8'), /EXT-X-PART/);
  });

  test('of CMAF in several periods is carried through, and cannot be made anew', async () => {
    const folder = join(place, 'periods');
    cpSync(cmaf, folder, { recursive: true, filter: (path) => !path.endsWith('.m3u8') });
    const mpd = join(folder, 'manifest.mpd');
    const whole = readFileSync(mpd, 'utf8').replace(/ mediaPresentationDuration="[^"]*"/, '');
    writeFileSync(
      mpd,
      whole.replace(/<Period id="0">[\s\S]*<\/Period>/, (period) => `${period}${period.replace('"0"', '"1"')}`),
    );
    const { outputPath } = await packageInput(folder);
    assert.deepEqual(filesIn(outputPath), filesIn(folder));
    await assert.rejects(
      packageInput(folder, { existing: 'repackage' }),
      (error: unknown) => error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED',
    );
  });

  test('of byte ranges that break off, which cannot be made anew, is carried through', async () => {
    const folder = publicationOf(
      'broken-off-ranges',
      '-map 0:v -c copy -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 -hls_flags single_file index.m3u8',
    );
    const path = join(folder, 'index.m3u8');
    const playlist = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      playlist.replace(/(\n)(#EXTINF[^\n]*\n[^\n]*\n[^\n]*\n#EXT-X-ENDLIST)/, '$1#EXT-X-DISCONTINUITY\n$2'),
    );
    assert.match(readFileSync(path, 'utf8'), /DISCONTINUITY/);
    const { outputPath, warnings } = await packageInput(folder);
    assert.deepEqual(filesIn(outputPath), filesIn(folder));
    assert.partialDeepStrictEqual(warnings, [{ details: { segments: 'byte ranges of whole files' } }]);
    await assert.rejects(
      packageInput(folder, { existing: 'repackage' }),
      (error: unknown) => error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED',
    );
  });

  test('of CMAF that may still grow is carried through, and that is told', async () => {
    const folder = join(place, 'live-mpd');
    cpSync(cmaf, folder, { recursive: true });
    const mpd = join(folder, 'manifest.mpd');
    writeFileSync(mpd, readFileSync(mpd, 'utf8').replace('type="static"', 'type="dynamic"'));
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(filesIn(outputPath), filesIn(folder));
    assert.deepEqual(reasons, ['PUBLICATION_FOUND', 'PUBLICATION_MAY_GROW']);
    await assert.rejects(packageInput(folder, { strict: true }, { work: join(place, 'live-strict') }), {
      reason: 'PACKAGING_WARNED',
    });
    // Its playlists of HLS have an end, so it can be made anew, too.
    const anew = await packageInput(folder, { existing: 'repackage' }, { work: join(place, 'live-anew') });
    assertFilmIn(anew.outputPath, 'audio/en_aac');
  });

  test('of segments that hold their init segments themselves is made anew', async () => {
    const folder = publicationOf(
      'self-initialising',
      '-map 0:v -map 0:a:0 -c copy -f segment -segment_time 2 -segment_list index.m3u8 -segment_format mp4 -segment_format_options movflags=frag_keyframe+empty_moov+default_base_moof s%d.mp4',
    );
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(reasons, ['PUBLICATION_FOUND']);
    assertFilmIn(outputPath, 'audio/en_aac');
  });

  test('of key frames alone is carried through where they are whole fragments', async () => {
    const folder = join(place, 'key-frames');
    cpSync(cmaf, folder, { recursive: true, filter: (path) => !/\.mpd$|audio|text/.test(path) });
    const path = join(folder, 'video/h264_180p/index.m3u8');
    writeFileSync(path, readFileSync(path, 'utf8').replace('#EXTINF', '#EXT-X-I-FRAMES-ONLY\n#EXTINF'));
    const address = 'URI="video/h264_180p/index.m3u8"';
    writeFileSync(
      join(folder, 'master.m3u8'),
      `#EXTM3U\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=900000,CODECS="avc1.42c00d",${address}\n`,
    );
    const { outputPath, reasons } = await packageInput(folder);
    assert.deepEqual(filesIn(outputPath), filesIn(folder));
    assert.deepEqual(reasons, ['PUBLICATION_FOUND']);
  });

  test('by DASH alone is made anew', async () => {
    const folder = publicationOf('dash', '-map 0:v -map 0:a:0 -c copy -f dash -seg_duration 2 manifest.mpd');
    assertFilmIn((await packageInput(folder, { existing: 'repackage' })).outputPath, 'audio/en_aac');
  });

  test('is no publication where its playlist is a list of songs', async () => {
    const folder = join(place, 'songs');
    mkdirSync(folder);
    ffmpeg(place, ['-i', film], `-map 0:a:0 -c copy ${join(folder, 'song.m4a')}`);
    writeFileSync(join(folder, 'songs.m3u8'), '#EXTM3U\n#EXTINF:8,Artist - Title\nsong.m4a\n');
    const { outputPath } = await packageInput(folder);
    assert.ok(filesIn(outputPath)['audio/en_aac/init.mp4'] !== undefined);
  });
});

describe('a publication is refused', () => {
  const edits: Readonly<Record<string, (playlist: string) => string>> = {
    'that is live': (playlist) => playlist.replace('#EXT-X-ENDLIST', ''),
    'of which the time breaks off': (playlist) =>
      playlist.replace(/(#EXTINF.*\nindex1\.ts)/, '#EXT-X-DISCONTINUITY\n$1'),
    'of transport streams that are encrypted as a whole': (playlist) =>
      playlist.replace('#EXTINF', '#EXT-X-KEY:METHOD=AES-256,URI="key"\n#EXTINF'),
    'of encrypted transport streams': (playlist) =>
      playlist.replace('#EXTINF', '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key"\n#EXTINF'),
  };
  for (const [what, edit] of Object.entries(edits)) {
    test(what, async () => {
      const folder = join(place, what.replaceAll(' ', '-'));
      cpSync(transport, folder, { recursive: true });
      const playlist = readFileSync(join(folder, 'index.m3u8'), 'utf8');
      assert.notEqual(edit(playlist), playlist);
      writeFileSync(join(folder, 'index.m3u8'), edit(playlist));
      await assert.rejects(
        packageInput(folder),
        (error: unknown) => error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED',
      );
    });
  }

  test('of key frames in fragments that no playlist names', async () => {
    const folder = join(place, 'parts-of-fragments');
    cpSync(cmaf, folder, { recursive: true, filter: (path) => !/master|\.mpd$|audio|text/.test(path) });
    const path = join(folder, 'video/h264_180p/index.m3u8');
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replaceAll('#EXTINF', '#EXT-X-I-FRAMES-ONLY\n#EXT-X-BYTERANGE:2000@84\n#EXTINF'));
    await assert.rejects(
      packageInput(folder),
      (error: unknown) => error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED',
    );
  });

  test('of whole MP4 files that are named as segments', async () => {
    const folder = publicationOf(
      'whole-files',
      '-map 0:v -c copy -f segment -segment_time 2 -segment_list index.m3u8 -segment_format mp4 s%d.mp4',
    );
    await assert.rejects(
      packageInput(folder),
      (error: unknown) => error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED',
    );
  });

  test('that names bytes past the end of a file', async () => {
    const folder = publicationOf(
      'past-end',
      '-map 0:v -c copy -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 -hls_flags single_file index.m3u8',
    );
    const path = join(folder, 'index.m3u8');
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace(/#EXT-X-BYTERANGE:\d+(@\d+\n.*\n#EXT-X-END)/, '#EXT-X-BYTERANGE:9999999$1'),
    );
    await assert.rejects(
      packageInput(folder),
      (error: unknown) => error instanceof AppError && error.reason === 'BYTE_RANGE_PAST_END',
    );
  });

  test('that names bytes past the end of a file for an init segment', async () => {
    const folder = publicationOf(
      'past-end-of-init',
      '-map 0:v -c copy -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 -hls_flags single_file index.m3u8',
    );
    const path = join(folder, 'index.m3u8');
    writeFileSync(path, readFileSync(path, 'utf8').replace(/(#EXT-X-MAP:.*BYTERANGE="\d+)@0"/, '$1@99999999"'));
    await assert.rejects(
      packageInput(folder),
      (error: unknown) => error instanceof AppError && error.reason === 'BYTE_RANGE_PAST_END',
    );
  });

  test('that names bytes of transport streams which are not there', async () => {
    const folder = join(place, 'past-end-of-streams');
    cpSync(transport, folder, { recursive: true });
    const path = join(folder, 'index.m3u8');
    writeFileSync(path, readFileSync(path, 'utf8').replace('index0.ts', '#EXT-X-BYTERANGE:100@99999999\nindex0.ts'));
    await assert.rejects(
      packageInput(folder),
      (error: unknown) => error instanceof AppError && error.reason === 'BYTE_RANGE_PAST_END',
    );
  });

  test('that names a segment which is not there', async () => {
    const folder = join(place, 'gap');
    cpSync(transport, folder, { recursive: true });
    writeFileSync(
      join(folder, 'index.m3u8'),
      readFileSync(join(folder, 'index.m3u8'), 'utf8').replace('index1.ts', 'missing.ts'),
    );
    await assert.rejects(
      packageInput(folder),
      (error: unknown) => error instanceof AppError && error.reason === 'PLAYLIST_FILE_MISSING',
    );
  });
});
