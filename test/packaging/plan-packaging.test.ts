import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import type { PackagingPlan } from '#packaging/packaging-plan.ts';
import { planPackaging } from '#packaging/plan-packaging.ts';
import { hintsOfName, knownLanguage } from '#packaging/planning/languages.ts';
import { routeOf } from '#packaging/planning/stream-routes.ts';
import { type ProbedFile, type ProbedStream, STREAM_DEFAULTS } from '#packaging/probed-file.ts';

type Sketch = Partial<ProbedStream> & Pick<ProbedStream, 'kind' | 'codec'>;

/** A probed file of the streams given, which are numbered as a demuxer does. */
function fileOf(path: string, container: ProbedFile['container'], sketches: readonly Sketch[]): ProbedFile {
  const streams = sketches.map((sketch, streamIndex) => ({
    ...STREAM_DEFAULTS,
    durationSeconds: 60,
    streamIndex,
    indexOfKind: sketches.slice(0, streamIndex).filter(({ kind }) => kind === sketch.kind).length,
    ...sketch,
  }));
  return { path, container, streams, others: [], warnings: [] };
}

const video = (height: number): Sketch => ({ kind: 'video', codec: 'avc', width: (height * 16) / 9, height });
const audio = (language: string | null, codec = 'aac'): Sketch => ({ kind: 'audio', codec, language, channels: 2 });

function reasonsOf({ warnings }: PackagingPlan): string[] {
  return warnings.map(({ reason }) => reason);
}

function plan(files: readonly ProbedFile[], params: PackageParams = {}, hasFfmpeg = true): PackagingPlan {
  return planPackaging({ name: 'film', files, unusable: [], sharedTimeline: new Set() }, params, hasFfmpeg);
}

const folders = ({ streams }: PackagingPlan): string[] => streams.map(({ folder }) => folder);

function refuses(reason: string, attempt: () => unknown): void {
  assert.throws(attempt, (error: unknown) => error instanceof AppError && error.reason === reason);
}

describe('a plan', () => {
  test('gives renditions their names, the tallest first, and their sound once', () => {
    const files = [360, 1080, 720].map((height) => fileOf(`${height}.mp4`, 'mp4', [video(height), audio('eng')]));
    const made = plan(files);
    assert.deepEqual(folders(made), ['video/h264_1080p', 'video/h264_720p', 'video/h264_360p', 'audio/en_aac']);
    assert.deepEqual(
      made.leftOut.map(({ file }) => file),
      ['720.mp4', '360.mp4'],
    );
    assert.deepEqual(reasonsOf(made), ['TRACK_LEFT_OUT', 'TRACK_LEFT_OUT']);
  });

  test('takes the same subtitles of several renditions once, and those of files without pictures always', () => {
    const subtitles: Sketch = { kind: 'text', codec: 'wvtt', language: 'eng' };
    const films = [360, 720].map((height) => fileOf(`${height}.mp4`, 'mp4', [video(height), subtitles]));
    const made = plan([...films, fileOf('more.mp4', 'mp4', [subtitles])]);
    assert.deepEqual(folders(made), ['video/h264_720p', 'video/h264_360p', 'text/en', 'text/en_2']);
    assert.deepEqual(
      made.leftOut.map(({ file, what }) => [file, what]),
      [['360.mp4', 'the subtitle track']],
    );
  });

  test('gives no name twice', () => {
    const made = plan([
      fileOf('a.mp4', 'mp4', [video(720), audio('deu'), audio('deu')]),
      fileOf('b.mp4', 'mp4', [{ ...video(720), width: 720, height: 1280 }]),
    ]);
    assert.deepEqual(folders(made), ['video/h264_720p', 'video/h264_720p_2', 'audio/de_aac', 'audio/de_aac_2']);
    assert.deepEqual(
      made.streams.slice(2).map(({ label }) => label),
      ['Deutsch', 'Deutsch 2'],
    );
  });

  test('takes a language from the request, else the container, else the name, else says that nobody knows', () => {
    const files = [
      fileOf('a.fr.m4a', 'mp4', [audio('deu')]),
      fileOf('b.fr.m4a', 'mp4', [audio('und')]),
      fileOf('c.m4a', 'mp4', [audio(null)]),
      fileOf('d.fr.m4a', 'mp4', [audio('deu')]),
    ];
    const made = plan(files, { tracks: [{ file: 'd.fr.m4a', language: 'pt-br' }] });
    assert.deepEqual(Object.fromEntries(made.streams.map(({ file, language }) => [file, language])), {
      'a.fr.m4a': 'de',
      'b.fr.m4a': 'fr',
      'c.m4a': 'und',
      'd.fr.m4a': 'pt-BR',
    });
  });

  test('takes labels, roles and names from the request, for a stream or for all of a file', () => {
    const made = plan([fileOf('film.mp4', 'mp4', [video(720), audio('eng'), audio('eng')])], {
      default_language: 'en',
      tracks: [{ file: 'film.mp4', stream: 2, label: 'Director', role: 'commentary', name: 'director' }],
    });
    const [, main, commentary] = made.streams;
    assert.deepEqual([main?.folder, main?.label, main?.role], ['audio/en_aac', 'English', null]);
    assert.deepEqual(
      [commentary?.folder, commentary?.label, commentary?.role],
      ['audio/director', 'Director', 'commentary'],
    );
  });

  test('puts the default language first among the sound', () => {
    const made = plan([fileOf('film.mp4', 'mp4', [video(720), audio('eng'), audio('deu')])], {
      default_language: 'deu',
    });
    assert.deepEqual(folders(made), ['video/h264_720p', 'audio/de_aac', 'audio/en_aac']);
    assert.equal(made.defaultLanguage, 'de');
  });

  test('makes the audio default that states the requested language, else a form of it, else none, else the first', () => {
    const defaultOf = (languages: readonly (string | null)[]): string | null =>
      plan([fileOf('film.mp4', 'mp4', [video(720), ...languages.map((language) => audio(language))])], {
        default_language: 'en',
      }).defaultLanguage;
    assert.deepEqual(
      [['deu', 'en-GB', 'eng'], ['deu', 'en-GB', null], ['deu', null], ['deu', 'fra'], []].map(defaultOf),
      ['en', 'en-GB', 'und', 'de', null],
    );
  });

  test('warns of a default language that no audio and no subtitles are known to have', () => {
    const film = (language: string | null) => fileOf('film.mp4', 'mp4', [video(720), audio(language)]);
    const subtitles = fileOf('film.en.srt', 'srt', [{ kind: 'text', codec: 'srt', startSeconds: 1 }]);
    const reasons = (...files: ProbedFile[]) => reasonsOf(plan(files, { default_language: 'en' }));
    assert.deepEqual(reasons(film('eng')), []);
    assert.deepEqual(reasons(film('en-GB')), []);
    assert.deepEqual(reasons(film('deu'), subtitles), []);
    assert.deepEqual(reasons(film('deu')), ['DEFAULT_LANGUAGE_UNMATCHED']);
    assert.deepEqual(reasons(film(null)), ['DEFAULT_LANGUAGE_UNMATCHED']);
    assert.deepEqual(reasonsOf(plan([film(null)])), []);
  });

  test('shows subtitles in the default language only where no audio has it', () => {
    const shownBeside = (language: string): string | null => {
      const subtitles = fileOf('film.en-GB.srt', 'srt', [{ kind: 'text', codec: 'srt', startSeconds: 1 }]);
      const film = fileOf('film.mp4', 'mp4', [video(720), audio(language)]);
      return plan([film, subtitles], { default_language: 'en' }).defaultTextLanguage;
    };
    assert.deepEqual(['deu', 'en-US'].map(shownBeside), ['en-GB', null]);
  });

  test('says by which route each stream goes', () => {
    const routes = (file: ProbedFile): string[] =>
      plan([file]).streams.map(({ route }) => (route.kind === 'feed' ? `${route.into} ${route.packets}` : route.kind));
    assert.deepEqual(routes(fileOf('a.mp4', 'mp4', [video(720), audio('eng')])), ['direct', 'direct']);
    assert.deepEqual(routes(fileOf('a.mov', 'quicktime', [video(720), audio('eng')])), [
      'mp4 as-they-are',
      'mp4 as-they-are',
    ]);
    assert.deepEqual(routes(fileOf('a.mov', 'quicktime', [video(720)])), ['direct']);
    assert.deepEqual(routes(fileOf('a.mkv', 'matroska', [video(720)])), ['mp4 as-they-are']);
    assert.deepEqual(routes(fileOf('a.mp4', 'mp4', [video(720), audio('eng', 'mp3')])), [
      'direct',
      'mpegts as-they-are',
    ]);
    assert.deepEqual(routes(fileOf('a.wav', 'wave', [audio(null, 'pcm-s24')])), ['mp4 flac']);
    assert.deepEqual(routes(fileOf('a.mp4', 'mp4', [{ ...video(720), startSeconds: -1.3 }, audio('eng')])), [
      'mp4 as-they-are',
      'mp4 as-they-are',
    ]);
    assert.deepEqual(routes(fileOf('a.ts', 'mpeg-ts', [video(720), audio(null)])), ['direct', 'direct']);
    assert.deepEqual(routes(fileOf('a.ts', 'mpeg-ts', [video(720), audio(null), audio(null)]))[0], 'mp4 as-they-are');
  });

  test('warns of audio of another length, and of subtitles that go on', () => {
    const subtitles = fileOf('film.srt', 'srt', [{ kind: 'text', codec: 'srt', startSeconds: 1, durationSeconds: 90 }]);
    const short = { ...audio('eng'), durationSeconds: 30 };
    const made = plan([fileOf('a.mp4', 'mp4', [video(720)]), fileOf('b.m4a', 'mp4', [short]), subtitles]);
    assert.deepEqual(reasonsOf(made), ['RENDITION_LENGTHS_DIFFER', 'SUBTITLES_CUT']);
  });

  test('is refused for videos of different lengths, which it names, but not for a second more or less', () => {
    const films = (...seconds: readonly (number | null)[]) =>
      seconds.map((durationSeconds, index) =>
        fileOf(`${index}.mp4`, 'mp4', [{ ...video(720 - index), durationSeconds }]),
      );
    assert.equal(plan(films(60, 59.1, null)).streams.length, 3);
    assert.throws(
      () => plan(films(60, 58.5)),
      (error: unknown) => {
        assert.ok(error instanceof AppError);
        assert.equal(error.reason, 'PACKAGING_FILMS_DIFFER');
        assert.deepEqual((error.details as { films: unknown }).films, [
          { file: '0.mp4', seconds: 60 },
          { file: '1.mp4', seconds: 58.5 },
        ]);
        return true;
      },
    );
  });

  test('takes renditions of a publication that end a segment apart, but not several publications', () => {
    const recorded = (seconds: number) => {
      const files = [720, 360].map((height, index) =>
        fileOf(`${height}.ts`, 'mpeg-ts', [{ ...video(height), durationSeconds: 60 - index * seconds }]),
      );
      const folder = { name: 'film', files, unusable: [], sharedTimeline: new Set(['720.ts', '360.ts']) };
      return planPackaging(folder, {}, true).streams.length;
    };
    assert.equal(recorded(6), 2);
    refuses('PACKAGING_FILMS_DIFFER', () => recorded(30));
  });

  test('warns of languages that are not there in every codec, and of pre-roll that is shown', () => {
    const scattered = plan([
      fileOf('a.mp4', 'mp4', [video(720), audio('eng')]),
      fileOf('b.de.mp3', 'mp3', [audio(null, 'mp3')]),
    ]);
    assert.deepEqual(reasonsOf(scattered), ['LANGUAGES_SPLIT_BY_CODEC']);
    const both = plan([fileOf('a.mp4', 'mp4', [video(720), audio('eng'), audio('eng', 'ac3')])]);
    assert.deepEqual(both.warnings, []);
    const shown = plan([fileOf('a.mp4', 'mp4', [{ ...video(720), startSeconds: -1.3 }])]);
    assert.deepEqual(reasonsOf(shown), ['PREROLL_SHOWN']);
  });

  test('leaves out subtitles that start when the film is over', () => {
    const late = fileOf('film.srt', 'srt', [{ kind: 'text', codec: 'srt', startSeconds: 70, durationSeconds: 5 }]);
    assert.deepEqual(folders(plan([fileOf('a.mp4', 'mp4', [video(720)]), late])), ['video/h264_720p']);
  });

  test('tells of subtitles of a late publication that do not say which time theirs is, unless only one of two fits', () => {
    const film = { ...fileOf('v.mp4', 'mp4', [{ ...video(720), startSeconds: 10 }]) };
    const shiftOf = (startSeconds: number, durationSeconds: number) => {
      const text = fileOf('t.vtt', 'vtt', [{ kind: 'text', codec: 'vtt', startSeconds, durationSeconds }]);
      const folder = { name: 'film', files: [film, text], unusable: [], sharedTimeline: new Set(['v.mp4', 't.vtt']) };
      const { streams, warnings } = planPackaging(folder, {}, true);
      return [streams.at(-1)?.shiftSeconds, warnings.length];
    };
    assert.deepEqual(shiftOf(2, 40), [0, 0]);
    assert.deepEqual(shiftOf(12, 56), [-10, 0]);
    assert.deepEqual(shiftOf(12, 40), [-10, 1]);
  });

  test('brings late media to zero where subtitles or other media have to fit, and has the packager read all others', () => {
    const late = fileOf('a.mp4', 'mp4', [{ ...video(720), startSeconds: 10 }]);
    const times = (...files: ProbedFile[]) =>
      plan(files).streams.map(({ route, shiftSeconds }) => [route.kind, shiftSeconds]);
    assert.deepEqual(times(late), [['direct', 0]]);
    assert.deepEqual(times(late, fileOf('a.wav', 'wave', [audio(null, 'pcm-s16')])), [
      ['feed', -10],
      ['feed', 0],
    ]);
    // A stream that starts at zero is the start of all.
    assert.deepEqual(times(late, fileOf('b.m4a', 'mp4', [audio('eng')])), [
      ['direct', 0],
      ['direct', 0],
    ]);
  });

  test('is refused where ffmpeg is needed and missing, and where there is too much', () => {
    refuses('PACKAGING_FFMPEG_MISSING', () => plan([fileOf('a.mkv', 'matroska', [video(720)])], {}, false));
    refuses('PACKAGING_TOO_LARGE', () =>
      plan(Array.from({ length: 101 }, (_, index) => fileOf(`${index}.mp4`, 'mp4', [video(720)]))),
    );
  });
});

test('a codec that is not packaged is called by its id, also by one that every object has', () => {
  const file = fileOf('film.mkv', 'matroska', [
    { kind: 'video', codec: null, codecId: 'constructor' },
    { kind: 'text', codec: null, codecId: 'constructor' },
  ]);
  const [picture, subtitles] = file.streams.map((stream) => Object.values(routeOf(file, stream, true)).join());
  assert.match(picture ?? '', /^the codec "constructor" is not played/);
  assert.match(subtitles ?? '', /of the kind constructor cannot/);
});

describe('a language', () => {
  test('is known by its codes, those for libraries included', () => {
    const known = ['eng', 'EN', 'ger', 'deu', 'pt-br', 'zh-Hans', 'und', 'xx', '', '1080p', 'english', null].map(
      knownLanguage,
    );
    assert.deepEqual(known, ['en', 'en', 'de', 'de', 'pt-BR', 'zh-Hans', null, null, null, null, null, null]);
  });

  test('is read from the end of a name', () => {
    const hints = [
      'film.en.srt',
      'a/film_pt-BR.vtt',
      'film-de.m4a',
      'en.vtt',
      'film.en.forced.srt',
      'film.en.sdh.srt',
      'film.vtt',
      'the-end.vtt',
      'film.constructor.srt',
    ];
    assert.deepEqual(
      hints.map((name) => Object.values(hintsOfName(name)).join()),
      ['en,', 'pt-BR,', 'de,', 'en,', 'en,forced', 'en,caption', ',', ',', ','],
    );
  });
});
