import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { parseTimedText } from '#packaging/subtitles/timed-text.ts';
import { clipCues, parseSubtitles, webVttOf } from '#packaging/subtitles/web-vtt.ts';

const read = (text: string) => parseTimedText(Buffer.from(text), 'text.ttml').cues;
const document = (body: string, attributes = '') =>
  `<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="p" ${attributes}><head/><body>${body}</body></tt>`;
const milliseconds = (seconds: number) => Math.round(seconds * 1000) / 1000;
const timesOf = (text: string) =>
  read(text).map(({ startSeconds, endSeconds }) => [startSeconds, endSeconds].map(milliseconds));

describe('TTML', () => {
  test('is read for its text and lines, in the order of time', () => {
    const body = `<div><p begin="3s" end="4s">later</p><p begin="00:00:01.5" dur="500ms">
      Fish &amp; <span style="loud">chips</span><br/>&#228; &lt;i&gt;  b<metadata>no</metadata></p></div>`;
    assert.deepEqual(read(document(body)), [
      { startSeconds: 1.5, endSeconds: 2, settings: '', lines: ['Fish &amp; chips', 'ä &lt;i&gt; b'] },
      { startSeconds: 3, endSeconds: 4, settings: '', lines: ['later'] },
    ]);
  });

  test('keeps references to entities that XML does not have as they are written', () => {
    const [cue] = read(document('<p begin="0s" end="1s">&toString; &valueOf; &nbsp; &AMP;</p>'));
    assert.deepEqual(cue?.lines, ['&amp;toString; &amp;valueOf; &amp;nbsp; &amp;AMP;']);
  });

  test('counts time in frames and ticks as it says', () => {
    const rates = 'ttp:frameRate="25" ttp:tickRate="10000000"';
    assert.deepEqual(
      timesOf(document('<p begin="00:00:01:05" end="40000000t">a</p><p begin="50f" end="1m">b</p>', rates)),
      [
        [1.2, 4],
        [2, 60],
      ],
    );
    const slower = 'ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"';
    assert.deepEqual(timesOf(document('<p begin="30f" end="0.5h">a</p>', slower)), [[1.001, 1800]]);
  });

  test('counts times of elements from the start of those around them, within their end', () => {
    const body =
      '<div begin="10s" end="20s"><p begin="1s">to the end</p><p begin="2s" end="60s">cut</p><p><span begin="5s" end="6s">one</span><span begin="6s" dur="1s">two</span></p></div>';
    assert.deepEqual(timesOf(document(body)), [
      [11, 20],
      [12, 20],
      [15, 16],
      [16, 17],
    ]);
    assert.deepEqual(read(document('<p begin="1s">without an end</p><p begin="2s" end="3s"><br/></p>')), []);
  });

  test('that defines entities, nests too deep or is something else is refused', () => {
    const refused = { reason: 'SUBTITLES_MALFORMED' };
    assert.throws(() => read('<!DOCTYPE tt [<!ENTITY a "b">]><tt/>'), refused);
    assert.throws(() => read(document('<div>'.repeat(1000) + '</div>'.repeat(1000))), refused);
    assert.throws(() => read('<html/>'), refused);
    assert.throws(() => read('<tt><body></tt>'), refused);
  });

  test('is read or refused, whatever it holds', () => {
    const pieces = fc.constantFrom(
      '<p begin="1s" end="2s">',
      '</p>',
      '<span dur="9t">',
      '</span>',
      '&#x110000;',
      'a',
      '\0',
      '<br/>',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 20 }), (body) => {
        try {
          read(document(body.join('')));
        } catch (error) {
          assert.ok(error instanceof AppError, String(error));
        }
      }),
    );
  });
});

const parse = (text: string) => parseSubtitles(Buffer.from(text));
const anew = (text: string): string => webVttOf(parse(text));

describe('subtitles', () => {
  test('of SubRip become WebVTT, without what only SubRip knows', () => {
    const srt =
      '1\r\n00:00:01,5 --> 00:00:02,250 X1:10 X2:20\r\n<font color="red">One</font>\r\n{\\an8}Two\r\n\r\n2\r\n0:00:03,000 --> 1:00:00,000\r\n<i>Three</i>\r\n';
    assert.equal(
      anew(srt),
      'WEBVTT\n\n00:00:01.500 --> 00:00:02.250\nOne\nTwo\n\n00:00:03.000 --> 01:00:00.000\n<i>Three</i>\n',
    );
  });

  test('of WebVTT keep their styles, settings and order in time; notes and names of cues go', () => {
    const vtt =
      'WEBVTT - title\n\nSTYLE\n::cue { color: red }\n\nNOTE said nothing\n\nb\n00:05.000 --> 00:06.000\nlater\n\na\n00:01.000 --> 00:02.000 line:0 align:start\nfirst\n';
    assert.equal(
      anew(vtt),
      'WEBVTT\n\nSTYLE\n::cue { color: red }\n\n00:00:01.000 --> 00:00:02.000 line:0 align:start\nfirst\n\n00:00:05.000 --> 00:00:06.000\nlater\n',
    );
  });

  test('of joined segments have every cue once', () => {
    const cue = '00:03.000 --> 00:05.000\ngoes on\n';
    const joined = `WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n\n${cue}\ufeffWEBVTT\n\n${cue}`;
    assert.equal(anew(joined), 'WEBVTT\n\n00:00:03.000 --> 00:00:05.000\ngoes on\n');
  });

  test('of joined segments whose times count from the start of each are put where the segments begin', () => {
    const segment = (ticks: number) =>
      `WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:${ticks},LOCAL:00:00:00.000\n\n00:00.500 --> 00:01.500\nhello\n`;
    const { cues, zeroSeconds } = parse(segment(900_000) + segment(1_080_000) + segment(1_260_000));
    assert.equal(zeroSeconds, 10);
    assert.deepEqual(
      cues.map(({ startSeconds }) => startSeconds),
      [0.5, 2.5, 4.5],
    );
    const over = parse(segment(2 ** 33 - 90_000) + segment(90_000));
    assert.deepEqual(
      over.cues.map(({ startSeconds }) => Math.round(startSeconds * 1000)),
      [500, 2500],
    );
  });

  test('of which times are written short are read', () => {
    assert.equal(anew('1\n0:0:01 --> 0:0:3\nshort\n'), 'WEBVTT\n\n00:00:01.000 --> 00:00:03.000\nshort\n');
  });

  test('in UTF-16 are read, with and without a mark of their byte order', () => {
    const srt = '1\n00:00:01,000 --> 00:00:02,000\nÜber “alles”\n';
    const little = Buffer.from(srt, 'utf16le');
    const big = Buffer.from(srt, 'utf16le').swap16();
    const marked = Buffer.concat([Buffer.from([0xff, 0xfe]), little]);
    for (const bytes of [little, big, marked]) assert.match(webVttOf(parseSubtitles(bytes)), /Über “alles”/);
  });

  test('that are no UTF-8 are read as Windows-1252', () => {
    const bytes = Buffer.concat([Buffer.from('1\n00:00:01,000 --> 00:00:02,000\ncaf'), Buffer.from([0xe9, 0x0a])]);
    assert.match(webVttOf(parseSubtitles(bytes)), /café/);
  });

  test('without an end after their start, or without text, are none', () => {
    assert.deepEqual(parse('00:02.000 --> 00:01.000\nback\n\n00:03.000 --> 00:04.000\n\n').cues, []);
  });

  test('end with the film', () => {
    const clipped = clipCues(parse('00:01.000 --> 00:09.000\na\n\n00:07.000 --> 00:08.000\nb\n'), 5);
    assert.deepEqual(
      clipped.cues.map(({ startSeconds, endSeconds }) => [startSeconds, endSeconds]),
      [[1, 5]],
    );
  });

  test('read again are the same, whatever they were', () => {
    const lines = fc.string().map((line) => `${line}\n`);
    const cue = fc
      .tuple(
        fc.nat(90_000_000),
        fc.integer({ min: 1, max: 9_000_000 }),
        fc.array(lines, { minLength: 1, maxLength: 3 }),
      )
      .map(([start, length, text]) => {
        const time = (value: number): string => new Date(value).toISOString().slice(11, 23);
        return `${time(start % 80_000_000)} --> ${time((start % 80_000_000) + length)}\n${text.join('')}\n`;
      });
    fc.assert(
      fc.property(fc.array(fc.oneof(cue, lines)), (blocks) => {
        const once = anew(`WEBVTT\n\n${blocks.join('')}`);
        assert.equal(anew(once), once);
      }),
    );
  });
});
