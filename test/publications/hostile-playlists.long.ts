import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { readPublication } from '#publications/read-publication.ts';
import { folderOf } from '../support/publications/make-folder.ts';

const { signal } = new AbortController();
const patterns = { playlist: 'p.*', init: 'init.mp4', frag: '*.m4s' };
const media = { 'init.mp4': '', '1.m4s': '', '2.m4s': '' };

/** Reads a folder with that playlist; only errors of the catalogue are let pass. */
async function readAnything(playlist: Record<string, string | Uint8Array>): Promise<void> {
  try {
    await readPublication(folderOf({ ...media, ...playlist }), patterns, signal);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    assert.ok(error.message.length < 5_000);
  }
}

const HLS_LINES = [
  '#EXT-X-VERSION:7',
  '#EXT-X-TARGETDURATION:4',
  '#EXT-X-MAP:URI="init.mp4"',
  '#EXT-X-MAP:URI="init.mp4",BYTERANGE="5@1"',
  '#EXT-X-BYTERANGE:5',
  '#EXT-X-BYTERANGE:5@3',
  '#EXTINF:4,',
  '#EXTINF:',
  '#EXT-X-KEY:METHOD=NONE',
  '#EXT-X-GAP',
  '#EXT-X-DISCONTINUITY',
  '#EXT-X-I-FRAMES-ONLY',
  '#EXT-X-STREAM-INF:BANDWIDTH=1',
  '#EXT-X-MEDIA:TYPE=AUDIO,URI="p.m3u8"',
  '#EXT-X-DATERANGE:ID="x',
  '#EXT-X-DEFINE:NAME="a',
  '1.m4s',
  '2.m4s',
  'p.m3u8',
  '../x',
  '',
];

describe('a playlist of any text is read or refused', () => {
  test('HLS made of its own lines, in any order and broken anywhere', async () => {
    const line = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...HLS_LINES) }, fc.string({ maxLength: 30 }));
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 20 }), fc.nat(400), async (lines, length) => {
        await readAnything({ 'p.m3u8': `#EXTM3U\n${lines.join('\n').slice(0, length)}` });
      }),
      { numRuns: 1_000 },
    );
  });

  test('MPDs made of their own elements and attributes', async () => {
    const name = fc.constantFrom(
      'Period',
      'AdaptationSet',
      'Representation',
      'SegmentTemplate',
      'SegmentTimeline',
      'S',
      'SegmentList',
      'SegmentURL',
      'SegmentBase',
      'Initialization',
      'BaseURL',
    );
    const value = fc.constantFrom(
      '0',
      '1',
      '-1',
      '99999999999999999999',
      'PT4S',
      'init.mp4',
      '$Number$.m4s',
      '$Number%09d$',
      '$$',
      '0-9',
      '9-0',
      '1.m4s',
      '&lt;',
      '',
    );
    const attribute = fc.constantFrom(
      'id',
      'duration',
      'start',
      'timescale',
      'media',
      'initialization',
      'startNumber',
      'endNumber',
      't',
      'd',
      'r',
      'k',
      'range',
      'mediaRange',
      'indexRange',
      'sourceURL',
      'mimeType',
    );
    const attributes = fc.uniqueArray(fc.tuple(attribute, value), { maxLength: 6, selector: ([key]) => key });
    const below = (names: fc.Arbitrary<string>, children: fc.Arbitrary<string[]>): fc.Arbitrary<string> =>
      fc
        .tuple(names, attributes, children)
        .map(
          ([tag, pairs, inner]) =>
            `<${tag}${pairs.map(([key, text]) => ` ${key}="${text}"`).join('')}>${inner.join('\n')}</${tag}>`,
        );
    // Mostly in the order that the schema asks for, so that the depths are reached.
    const levels = ['S', 'SegmentTimeline', 'SegmentTemplate', 'Representation', 'AdaptationSet', 'Period'];
    let element = below(name, fc.constant([]));
    for (const level of levels) {
      const names = fc.oneof({ weight: 4, arbitrary: fc.constant(level) }, { weight: 1, arbitrary: name });
      element = below(names, fc.array(element, { minLength: 1, maxLength: 2 }));
    }
    await fc.assert(
      fc.asyncProperty(fc.array(element, { maxLength: 5 }), async (elements) => {
        await readAnything({ 'p.mpd': `<MPD mediaPresentationDuration="PT8S">${elements.join('')}</MPD>` });
      }),
      { numRuns: 500 },
    );
  });

  test('any bytes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom('', '<', '<MPD ', '#EXTM3U\n'),
        async (bytes, start) => {
          await readAnything({ 'p.m3u8': Buffer.concat([Buffer.from(start), bytes]) });
        },
      ),
      { numRuns: 500 },
    );
  });
});
