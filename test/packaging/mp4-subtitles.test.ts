import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { findPackager } from '#packaging/programs/shaka-packager.ts';
import { readMp4Subtitles } from '#packaging/subtitles/mp4-subtitles.ts';
import { makeFilm } from '../support/media/make-film.ts';
import { MemorySource } from '../support/memory-source.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const { signal } = new AbortController();

const VTT = `WEBVTT

00:00:00.500 --> 00:00:02.000 line:80% align:left
Hello <b>world</b>
second line

00:00:01.500 --> 00:00:03.500
Fish &amp; chips

00:00:05.000 --> 00:00:07.500
The end
`;

before(() => {
  makeFilm(place);
  writeFileSync(join(place, 'text.vtt'), VTT);
});

const box = (type: string, ...content: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(content.map((part) => Buffer.from(part as string)));
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + body.length);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, body]);
};

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, 4 * index);
  return bytes;
};

interface MadeSample {
  readonly duration: number;
  readonly payload: Buffer;
}

/** A movie of one track of subtitles at 1000 ticks a second, in two chunks, which an edit list puts off by 2 s. */
function makeMovie(entry: Buffer, samples: readonly MadeSample[]): Buffer {
  const ftyp = box('ftyp', 'isom', words(0));
  const payloads = samples.map(({ payload }) => payload);
  const [first = Buffer.alloc(0), ...others] = payloads;
  const mdat = box('mdat', first, 'a gap between the chunks', ...others);
  const at = ftyp.length + 8;
  const stbl = box(
    'stbl',
    box('stsd', words(0, 1), entry),
    box('stts', words(0, samples.length, ...samples.flatMap(({ duration }) => [1, duration]))),
    box('stsc', words(0, 2, 1, 1, 1, 2, samples.length - 1, 1)),
    box('stsz', words(0, 0, samples.length, ...payloads.map(({ length }) => length))),
    box('stco', words(0, 2, at, at + first.length + 'a gap between the chunks'.length)),
  );
  const mdhd = box('mdhd', words(0, 0, 0, 1000, 0, 0x55c40000));
  const hdlr = box('hdlr', words(0, 0), 'text', words(0, 0, 0, 0));
  const elst = box('elst', words(0, 2, 1200, -1, 0x10000, 60_000, 0, 0x10000));
  const tkhd = box('tkhd', words(7, 0, 0, 1), Buffer.alloc(68));
  const trak = box('trak', tkhd, box('edts', elst), box('mdia', mdhd, hdlr, box('minf', stbl)));
  return Buffer.concat([ftyp, mdat, box('moov', box('mvhd', words(0, 0, 0, 600), Buffer.alloc(84)), trak)]);
}

const entryOf = (type: string, ...content: readonly Buffer[]) => box(type, words(0, 1), ...content);
const cue = (text: string, settings = '') => box('vttc', box('sttg', settings), box('payl', text));
const read = (bytes: Buffer) => readMp4Subtitles(new MemorySource(bytes), 0, signal);

const WVTT = makeMovie(entryOf('wvtt', box('vttC', 'WEBVTT\n\nSTYLE\n::cue { color: lime }')), [
  { duration: 500, payload: Buffer.concat([cue('one', 'line:0'), cue('two\nlines')]) },
  { duration: 500, payload: Buffer.concat([cue('one', 'line:0')]) },
  { duration: 1000, payload: box('vtte') },
  { duration: 1000, payload: cue('one', 'line:0') },
]);

/** Has the packager make a file of subtitles of text.vtt. */
function packagedText(name: string, format: 'vtt+mp4' | 'ttml+mp4', template?: string): string {
  const output =
    template === undefined
      ? `output=${name}`
      : `init_segment=${name},segment_template=${template},playlist_name=t.m3u8`;
  const descriptor = `in=text.vtt,stream=text,format=${format},lang=de,${output}`;
  execFileSync(findPackager(), ['--quiet', '--segment_duration=3', descriptor], { cwd: place, stdio: 'pipe' });
  return join(place, name);
}

describe('subtitles in MP4', () => {
  test('of WebVTT are read from a sample table, whole where samples cut them, and in time', async () => {
    const lines = ['two', 'lines'];
    assert.deepEqual(await read(WVTT), {
      zeroSeconds: null,
      head: ['STYLE\n::cue { color: lime }'],
      cues: [
        { startSeconds: 2, endSeconds: 3, settings: 'line:0', lines: ['one'] },
        { startSeconds: 2, endSeconds: 2.5, settings: '', lines },
        { startSeconds: 4, endSeconds: 5, settings: 'line:0', lines: ['one'] },
      ],
    });
  });

  test('of WebVTT and of TTML are read from fragments as they were', async () => {
    const webVtt = (await read(readFileSync(packagedText('w.mp4', 'vtt+mp4')))).cues;
    assert.deepEqual(
      webVtt.map(({ startSeconds, endSeconds }) => [startSeconds, endSeconds]),
      [
        [0.5, 2],
        [1.5, 3.5],
        [5, 7.5],
      ],
    );
    assert.deepEqual(webVtt[0]?.lines, ['Hello <b>world</b>', 'second line']);
    assert.match(webVtt[0]?.settings ?? '', /line:80%/);
    const timedText = (await read(readFileSync(packagedText('t.mp4', 'ttml+mp4')))).cues;
    assert.deepEqual(
      timedText.map(({ startSeconds, endSeconds }) => [startSeconds, endSeconds]),
      webVtt.map(({ startSeconds, endSeconds }) => [startSeconds, endSeconds]),
    );
  });

  test('are read in bounded time from whatever bytes', async () => {
    const whole = [WVTT, readFileSync(packagedText('fuzzed.mp4', 'vtt+mp4'))];
    const damaged = fc.tuple(fc.constantFrom(...whole), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 8 }));
    await fc.assert(
      fc.asyncProperty(damaged, async ([bytes, changes]) => {
        const changed = Buffer.from(bytes);
        for (const [at, value] of changes) changed[at % changed.length] = value;
        await read(changed).catch((error: unknown) => assert.ok(error instanceof AppError, String(error)));
      }),
    );
  });

  test('that lie past the end of their file, or are more than a film has, are refused', async () => {
    const entry = entryOf('wvtt');
    const endless = makeMovie(entry, [
      { duration: 1, payload: Buffer.alloc(16) },
      { duration: 1, payload: Buffer.alloc(16) },
    ]);
    const sizes = endless.indexOf('stsz') + 8;
    const past = Buffer.from(endless);
    past.writeUInt32BE(1 << 30, sizes + 8);
    await assert.rejects(read(past), { reason: 'SAMPLE_PAST_END' });
    // Four billion samples of one byte each, all in one chunk.
    endless.writeUInt32BE(1, sizes);
    endless.writeUInt32BE(0xffffffff, sizes + 4);
    endless.writeUInt32BE(0xffffffff, endless.indexOf('stts') + 12);
    endless.writeUInt32BE(0xffffffff, endless.indexOf('stsc') + 16);
    await assert.rejects(read(endless), { reason: 'SAMPLE_PAST_END' });
  });

  test('become WebVTT when they are packaged, and what TTML loses by it is told', async () => {
    const folder = join(place, 'film-and-text');
    mkdirSync(folder);
    copyFileSync(join(place, 'film.mp4'), join(folder, 'film.mp4'));
    copyFileSync(packagedText('w2.mp4', 'vtt+mp4'), join(folder, 'words.mp4'));
    copyFileSync(packagedText('t2.mp4', 'ttml+mp4'), join(folder, 'more.cmft'));
    const { outputPath, reasons } = await packageInput(folder);
    for (const rendition of ['text/de', 'text/de_2']) {
      const made = readdirSync(join(outputPath, rendition)).filter((name) => name.endsWith('.vtt'));
      const text = made.map((name) => readFileSync(join(outputPath, rendition, name), 'utf8')).join('\n');
      assert.match(text, /00:00:00\.500 --> 00:00:02\.000.*\nHello.*\nsecond line/, rendition);
      assert.match(text, /Fish &amp;/);
    }
    assert.deepEqual(reasons, ['SUBTITLE_STYLES_LOST']);
  });

  test('are kept where the segments of a publication are made anew', async () => {
    const folder = join(place, 'chunked');
    mkdirSync(folder);
    const args = [
      '--quiet',
      '--generate_static_live_mpd',
      '--segment_duration=4',
      '--mpd_output=chunked/manifest.mpd',
      'in=film.mp4,stream=video,init_segment=chunked/v.mp4,segment_template=chunked/v$Number$.m4s',
      'in=text.vtt,stream=text,format=ttml+mp4,lang=de,init_segment=chunked/t.mp4,segment_template=chunked/t$Number$.m4s',
    ];
    execFileSync(findPackager(), args, { cwd: place, stdio: 'pipe' });
    const { outputPath, reasons } = await packageInput(folder, { existing: 'repackage' });
    assert.match(readFileSync(join(outputPath, 'text/de/00001.vtt'), 'utf8'), /Hello/);
    assert.equal(reasons.filter((reason) => reason === 'SUBTITLE_STYLES_LOST').length, 1, reasons.join());
  });
});
