import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { readMatroskaSubtitles } from '#packaging/subtitles/matroska-subtitles.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { MemorySource } from '../support/memory-source.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const { signal } = new AbortController();
const film = join(place, 'film.mp4');

/** An element of EBML with its content, in full or in a form of unknown size. */
function element(id: number, ...content: readonly (Buffer | string | number)[]): Buffer {
  const body = Buffer.concat(content.map(bytesOf));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(0x10000000 + body.length);
  return Buffer.concat([bytesOf(id), size, body]);
}

function endless(id: number, ...content: readonly Buffer[]): Buffer {
  return Buffer.concat([bytesOf(id), Buffer.from('01ffffffffffffff', 'hex'), ...content]);
}

function bytesOf(content: Buffer | string | number): Buffer {
  if (typeof content !== 'number') return Buffer.from(content as string);
  const hex = content.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
}

const track = (number: number, codecId: string, header = '') =>
  element(0xae, element(0xd7, number), element(0x83, 0x11), element(0x86, codecId), element(0x63a2, header));

function block(trackNumber: number, at: number, duration: number, text: string, addition?: string): Buffer {
  const head = Buffer.from([0x80 | trackNumber, at >> 8, at & 255, 0]);
  const additions =
    addition === undefined ? [] : [element(0x75a1, element(0xa6, element(0xee, 1), element(0xa5, addition)))];
  return element(0xa0, element(0xa1, head, text), ...additions, element(0x9b, duration));
}

/** A Matroska file of two tracks of subtitles, and nothing else. */
function subtitlesFile(codecId: string, blocks: readonly Buffer[], header = ''): Buffer {
  const tracks = element(0x1654ae6b, track(1, 'S_TEXT/UTF8'), track(2, codecId, header));
  const info = element(0x1549a966, element(0x2ad7b1, 1_000_000));
  const clusters = blocks.map((content, index) => endless(0x1f43b675, element(0xe7, 10_000 * index), content));
  return Buffer.concat([
    element(0x1a45dfa3, element(0x4282, 'matroska')),
    endless(0x18538067, info, tracks, ...clusters),
  ]);
}

const read = (content: Uint8Array) => readMatroskaSubtitles(new MemorySource(Buffer.from(content)), 1, signal);

before(() => {
  makeFilm(place);
});

describe('subtitles in Matroska', () => {
  test('of WebVTT are read with the settings that stand beside them, and with their styles', async () => {
    const file = subtitlesFile(
      'S_TEXT/WEBVTT',
      [
        block(2, 1000, 2000, 'Good <i>evening</i>', 'align:start line:10%\nname\n'),
        block(1, 0, 9, 'other'),
        block(2, 500, 700, 'two\nlines'),
      ],
      'WEBVTT\n\nSTYLE\n::cue { color: lime }\n',
    );
    assert.deepEqual(await read(file), {
      zeroSeconds: null,
      head: ['STYLE\n::cue { color: lime }'],
      cues: [
        { startSeconds: 1, endSeconds: 3, settings: 'align:start line:10%', lines: ['Good <i>evening</i>'] },
        { startSeconds: 20.5, endSeconds: 21.2, settings: '', lines: ['two', 'lines'] },
      ],
    });
  });

  test('of WebVTT are read as WebM has them', async () => {
    const file = subtitlesFile('D_WEBVTT/SUBTITLES', [block(2, 0, 1500, 'name\nline:0\nHello')]);
    assert.deepEqual((await read(file)).cues, [
      { startSeconds: 0, endSeconds: 1.5, settings: 'line:0', lines: ['Hello'] },
    ]);
  });

  test('are read in bounded time from whatever bytes', async () => {
    const file = subtitlesFile('S_TEXT/UTF8', [block(2, 1000, 2000, 'Hello'), block(2, 1, 2, 'World')]);
    const damaged = fc
      .array(fc.tuple(fc.nat(file.length), fc.nat(255)), { minLength: 1, maxLength: 20 })
      .map((changes) => {
        const copy = Buffer.from(file);
        for (const [at, value] of changes) copy[at] = value;
        return copy;
      });
    await fc.assert(
      fc.asyncProperty(fc.oneof(damaged, fc.uint8Array({ maxLength: 500 })), async (content) => {
        await read(content);
      }),
      { numRuns: 300 },
    );
  });

  test('are packaged, from a file of their own and beside a film, with their settings', async () => {
    const folder = join(place, 'both');
    mkdirSync(folder);
    writeFileSync(join(place, 'film.vtt'), 'WEBVTT\n\n00:01.000 --> 00:03.000 line:10%\nbonsoir\n');
    ffmpeg(place, ['-i', film, '-i', 'film.vtt'], '-map 0:v -map 1 -c copy -metadata:s:s:0 language=fre both/film.mkv');
    writeFileSync(
      join(folder, 'film.de.mks'),
      subtitlesFile('S_TEXT/WEBVTT', [block(2, 2000, 1000, 'Guten Abend', 'line:20%\n')]),
    );
    const { reasons } = await packageInput(folder, { segment_duration: 10 });
    const textOf = (language: string) =>
      readFileSync(join(`${folder}-work`, 'output/both/text', language, '00001.vtt'), 'utf8');
    assert.match(textOf('fr'), /00:00:01\.000 --> 00:00:03\.000 .*line:10%.*\nbonsoir/);
    assert.match(textOf('de_2'), /00:00:02\.000 --> 00:00:03\.000 .*line:20%.*\nGuten Abend/);
    assert.equal(reasons.filter((reason) => reason === 'SUBTITLES_EMPTY').length, 1, 'the first track is empty');
    assert.ok(!existsSync(join(`${folder}-work`, 'output/both/text/de')));
  });
});
