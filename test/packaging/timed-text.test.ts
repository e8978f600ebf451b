import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { parseTimedText } from '#packaging/subtitles/timed-text.ts';

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
