import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Reason } from '#errors/catalogue.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { assertRefused, empty, type Files, hls, mpd, period, renditionsOf, segments } from './make-playlists.ts';

describe('refused, naming file and line', () => {
  const good = { 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')), ...empty('init.mp4', '1.m4s') };
  const cases: [string, Reason, Files, Partial<PublicationPatterns>, number?][] = [
    ['a pattern that matches nothing', 'PATTERN_NO_MATCH', good, { frag: 'nothing/*.m4s' }],
    ['a pattern that is no glob', 'PATTERN_INVALID', good, { init: '' }],
    [
      'a fragment that is missing',
      'PLAYLIST_FILE_MISSING',
      { ...good, 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s', '2.m4s')) },
      {},
      8,
    ],
    [
      'an init segment that is missing',
      'PLAYLIST_FILE_MISSING',
      { ...good, 'p.m3u8': hls('#EXT-X-MAP:URI="init9.mp4"', ...segments('1.m4s')) },
      {},
      4,
    ],
    ['an init segment without fragments', 'INIT_WITHOUT_FRAGMENTS', { ...good, 'init9.mp4': '' }, {}],
    ['a fragment without init segment', 'FRAGMENT_WITHOUT_INIT', { ...good, 'p.m3u8': hls(...segments('1.m4s')) }, {}],
    [
      'transport streams',
      'SEGMENTS_NEED_PACKAGING',
      { 'p.m3u8': hls(...segments('1.ts')), '1.ts': '' },
      { frag: '*.ts', init: '*.mp4' },
    ],
    [
      'an address above the folder',
      'PLAYLIST_LEAVES_FOLDER',
      { ...good, 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('../1.m4s')) },
      {},
      6,
    ],
    [
      'an encoded address above the folder',
      'PLAYLIST_LEAVES_FOLDER',
      { ...good, 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('%2e%2e/1.m4s')) },
      {},
      6,
    ],
    [
      'an address on another host',
      'PLAYLIST_LEAVES_FOLDER',
      { ...good, 'p.m3u8': hls('#EXT-X-MAP:URI="https://x.test/init.mp4"', ...segments('1.m4s')) },
      {},
      4,
    ],
    [
      'a segment encrypted whole',
      'PLAYLIST_UNSUPPORTED',
      { ...good, 'p.m3u8': hls('#EXT-X-KEY:METHOD=AES-128,URI="k"', ...segments('1.m4s')) },
      {},
      4,
    ],
    [
      'a segment encrypted whole, with a longer key',
      'PLAYLIST_UNSUPPORTED',
      { ...good, 'p.m3u8': hls('#EXT-X-KEY:METHOD=AES-256-GCM,URI="k"', ...segments('1.m4s')) },
      {},
      4,
    ],
    [
      'segments of DASH that are encrypted whole',
      'PLAYLIST_UNSUPPORTED',
      {
        ...good,
        'm.mpd': mpd(
          period(
            '<ContentProtection schemeIdUri="urn:mpeg:dash:sea:2012"><sea:SegmentEncryption schemeIdUri="urn:mpeg:dash:sea:aes128-cbc:2013"/></ContentProtection><SegmentTemplate initialization="init.mp4" media="1.m4s"/>',
          ),
        ),
      },
      {},
      3,
    ],
    [
      'partial segments',
      'PLAYLIST_UNSUPPORTED',
      { ...good, 'p.m3u8': hls('#EXT-X-PART:DURATION=1,URI="1.m4s"', ...segments('1.m4s')) },
      {},
      4,
    ],
    [
      'an address made of variables that come from elsewhere',
      'PLAYLIST_UNSUPPORTED',
      {
        ...good,
        'p.m3u8': hls('#EXT-X-DEFINE:QUERYPARAM="n"', '#EXT-X-MAP:URI="init.mp4"', ...segments('{$n}.m4s')),
      },
      {},
      7,
    ],
    [
      'variables that grow past all bounds',
      'PLAYLIST_TOO_LARGE',
      {
        ...good,
        'p.m3u8': hls(`#EXT-X-DEFINE:NAME="n",VALUE="${'x'.repeat(60_000)}"`, ...segments('{$n}'.repeat(16_000))),
      },
      {},
    ],
    [
      'a playlist that players may read differently, and no pattern matches',
      'PLAYLIST_AMBIGUOUS',
      { ...good, 'q.m3u8': hls('#EXT-X-MAP:URI=init.mp4', ...segments('1.m4s')) },
      { playlist: 'p.m3u8' },
      4,
    ],
    [
      'an MPD that cannot be read, and no pattern matches',
      'PLAYLIST_MALFORMED',
      { ...good, 'q.mpd': '<MPD>' },
      { playlist: 'p.m3u8' },
    ],
    ['a file that is no playlist', 'PLAYLIST_MALFORMED', { ...good, 'q.m3u8': 'hello' }, {}, 1],
    ['a playlist that is no text', 'PLAYLIST_MALFORMED', { ...good, 'q.m3u8': new Uint8Array([0xff, 0xfe, 0]) }, {}, 1],
    [
      'an MPD that defines entities',
      'PLAYLIST_MALFORMED',
      { ...good, 'm.mpd': '<?xml version="1.0"?>\n<!DOCTYPE MPD [<!ENTITY a "b">]>\n<MPD>&a;</MPD>' },
      {},
      2,
    ],
    ['an MPD that is cut short', 'PLAYLIST_MALFORMED', { ...good, 'm.mpd': '<MPD>\n<Period>\n' }, {}],
    [
      'an MPD nested too deep',
      'PLAYLIST_MALFORMED',
      { ...good, 'm.mpd': '<MPD>'.repeat(5000) + '</MPD>'.repeat(5000) },
      {},
    ],
    [
      'an MPD that includes itself',
      'PLAYLIST_UNSUPPORTED',
      { ...good, 'm.mpd': mpd('<Period xmlns:x="http://www.w3.org/1999/xlink" x:href="m.mpd"/>') },
      {},
      3,
    ],
    [
      'an MPD that repeats without end',
      'PLAYLIST_MALFORMED',
      {
        ...good,
        'm.mpd': mpd(
          period(
            '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s"><SegmentTimeline><S d="1" r="999999999"/></SegmentTimeline></SegmentTemplate>',
          ),
        ),
      },
      {},
      3,
    ],
    [
      'an MPD on another host',
      'PLAYLIST_LEAVES_FOLDER',
      { ...good, 'm.mpd': mpd('<BaseURL>https://x.test/</BaseURL>') },
      {},
      3,
    ],
  ];
  for (const [name, reason, files, patterns, line] of cases) {
    test(name, async () => {
      await assertRefused(reason, files, patterns, line);
    });
  }

  test('but not a start that is not the first, and languages of XML', async () => {
    const text = hls('#EXT-X-START:TIME-OFFSET=10', '#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s'));
    const template = '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="5"/>';
    const files = { 'p.m3u8': text, 'm.mpd': mpd(`<ProgramInformation xml:lang="en"/>${period(template)}`) };
    assert.deepEqual(await renditionsOf({ ...files, ...empty('init.mp4', '1.m4s', '2.m4s') }), [
      'init.mp4: 1.m4s 2.m4s',
    ]);
  });

  test('but not what applications put into the events of an MPD', async () => {
    const event = '<EventStream schemeIdUri="urn:x"><Event><a href="more.html"/></Event></EventStream>';
    const segment = '<SegmentList><Initialization sourceURL="init.mp4"/><SegmentURL media="1.m4s"/></SegmentList>';
    const files = { ...good, 'm.mpd': mpd(period(segment).replace('<Period>', `<Period>${event}`)) };
    assert.deepEqual(await renditionsOf(files, {}), ['init.mp4: 1.m4s']);
  });

  test('but not an address inside the place that the folder came from', async () => {
    const files = { ...good, 'p.m3u8': hls('#EXT-X-MAP:URI="/v/init.mp4"', ...segments('https://x.test/v/1.m4s')) };
    assert.deepEqual(await renditionsOf(files, {}, 'https://x.test/v/'), ['init.mp4: 1.m4s']);
  });
});

describe('a file whose name is not the one that its address says', () => {
  for (const [address, name] of [
    ['a%20b.m4s', 'a%20b.m4s'],
    ['a+b.m4s', 'a b.m4s'],
    ['caf%C3%A9.m4s', 'cafe\u0301.m4s'],
    ['a.m4s', 'A.m4s'],
    ['a.m4s?v=1', 'a.m4s?v=1'],
    ['take #3?.m4s', 'take #3?.m4s'],
    ['100%.m4s', '100%.m4s'],
    ['v//a.m4s', 'v/a.m4s'],
  ] as const) {
    test(`is refused with file and line: ${address}`, async () => {
      const files = { 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments(address)), ...empty('init.mp4', name) };
      await assertRefused('PLAYLIST_AMBIGUOUS', files, { frag: '**/*.m4s*' }, 6);
    });
  }
});

describe('a folder of the name that an address says is refused', () => {
  const folder = empty('init.mp4', '1.m4s', '2.m4s/index.html');

  test('for a gap', async () => {
    const gap = hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s'), '#EXT-X-GAP', ...segments('2.m4s'));
    await assertRefused('PLAYLIST_AMBIGUOUS', { 'p.m3u8': gap, ...folder }, {}, 9);
  });

  test('for the segment behind the last one', async () => {
    const template = '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="10"/>';
    await assertRefused('PLAYLIST_AMBIGUOUS', { 'm.mpd': mpd(period(template)), ...folder });
  });
});

test('a bit rate, which is about all segments below it, may stand above an init segment, and twice', async () => {
  const rates = ['#EXT-X-BITRATE:800', '#EXT-X-BITRATE:900'];
  const text = hls(...rates, '#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s', '2.m4s'));
  const found = await renditionsOf({ 'p.m3u8': text, ...empty('init.mp4', '1.m4s', '2.m4s') });
  assert.deepEqual(found, ['init.mp4: 1.m4s 2.m4s']);
});
