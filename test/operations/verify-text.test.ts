import { describe, test } from 'node:test';
import {
  asserted,
  DISCONTINUITY,
  type Files,
  fragments,
  hls,
  map,
  section,
  signedOf,
  verified,
} from './unsigned-playlists.ts';

// Text and pictures, which never carry a manifest, beside signed media: what is called text may be media to players.

const media = section('a', '160x90', 0);
const master = (...lines: string[]): string =>
  ['#EXTM3U', ...lines, '#EXT-X-STREAM-INF:BANDWIDTH=1', 'v.m3u8', ''].join('\n');
const SUBTITLES = master('#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="t",URI="t.m3u8"');
const signed = await signedOf({ ...media, 'v.m3u8': Buffer.from(hls(map('a'), fragments('a'))) }, '*.m3u8');

const TEXT = 'WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n';
const ENTRY = '#EXTINF:1,\nfilm.vtt';
/** A packet of a transport stream. */
const packet = Buffer.alloc(188, Buffer.from('47400010', 'hex'));
const mpd = (type: string): Buffer => {
  const urls = [0, 1, 2].map((number) => `<SegmentURL media="a${number}.m4s"/>`);
  const pictures = `<Representation id="0" bandwidth="1"><SegmentList timescale="1" duration="1"><Initialization sourceURL="ainit.mp4"/>${urls.join('')}</SegmentList></Representation>`;
  return Buffer.from(
    `<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S" minBufferTime="PT1S"><Period><AdaptationSet mimeType="video/mp4">${pictures}</AdaptationSet><AdaptationSet mimeType="${type}"><Representation id="9" bandwidth="9"><BaseURL>film.vtt</BaseURL></Representation></AdaptationSet></Period></MPD>\n`,
  );
};
const asSubtitles = (bytes: Buffer | string): Record<string, Buffer | string> => ({
  ...signed,
  'master.m3u8': SUBTITLES,
  't.m3u8': hls(ENTRY),
  'film.vtt': bytes,
});
const inMpd = (bytes: Buffer | string, type = 'text/vtt'): Record<string, Buffer | string> => ({
  ...signed,
  'manifest.mpd': mpd(type),
  'film.vtt': bytes,
});
const told = async (files: Parameters<typeof verified>[0], state: string): Promise<void> =>
  asserted(await verified(files), state, state === 'valid' ? /Media unchanged/ : /"deviations":\{"unsigned":1/);

describe('text is', () => {
  for (const [name, bytes] of [
    ['WebVTT', TEXT],
    ['WebVTT with a mark of the byte order', `\ufeff${TEXT}`],
    ['TTML', '<?xml version="1.0" encoding="utf-8"?>\n<tt xmlns="http://www.w3.org/ns/ttml"/>\n'],
    [
      'TTML with a prefix, behind comments and instructions',
      '<?xml version="1.0"?>\n<!-- <MPD> -->\n<?xml-stylesheet href="a.css"?>\n<tt:tt xmlns:tt="http://www.w3.org/ns/ttml"/>\n',
    ],
    ['SubRip', '1\n00:00:00,000 --> 00:00:01,000\nHello\n'],
    ['an empty segment', ''],
  ] as const) {
    test(`${name}, where a playlist names it as subtitles`, async () => {
      await told(asSubtitles(bytes), 'valid');
      await told(inMpd(bytes), 'valid');
    });
  }
});

describe('media are unsigned that playlists name as subtitles', () => {
  for (const [name, bytes] of [
    ['behind text', Buffer.concat([Buffer.from(`${TEXT}\nNOTE ${'x'.repeat(600)}\n\n`), packet])],
    ['by characters that no text has, and sound begins with (AC-3)', `${TEXT}\u000bw${TEXT}`],
    ['in UTF-8', `YUV4MPEG2 W4 H4\nFRAME\n${'x'.repeat(24)}`],
    ['behind more text than there is', TEXT + 'x'.repeat(4 * 1024 * 1024)],
    ['as a list of other files, which players read in XML of whatever name', mpd('text/vtt')],
    ['as such a list behind what looks like TTML', `<!-- <tt> --><?tt <tt> ?>${mpd('text/vtt').subarray(22)}`],
    ['behind the first bytes of a picture', Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), packet])],
  ] as const) {
    test(name, async () => {
      await told(asSubtitles(bytes), 'invalid');
      await told(inMpd(bytes), 'invalid');
      await told(inMpd(bytes, 'application/ttml+xml'), 'invalid');
    });
  }

  test('beside text', async () => {
    const mixed = hls(ENTRY, DISCONTINUITY, map('a'), fragments('a'));
    await told({ ...asSubtitles(TEXT), 't.m3u8': mixed }, 'invalid');
  });
});

describe('text is unsigned', () => {
  const without: Files = Object.fromEntries(Object.entries(signed).filter(([path]) => path !== 'v.m3u8'));

  test('in a playlist that no other one names as subtitles', async () => {
    await told({ ...signed, 't.m3u8': hls(ENTRY), 'film.vtt': TEXT }, 'invalid');
    await told(
      { ...asSubtitles(TEXT), 'master.m3u8': `${SUBTITLES}#EXT-X-STREAM-INF:BANDWIDTH=2\nt.m3u8\n` },
      'invalid',
    );
  });

  test('in a playlist of media', async () => {
    const mixed = hls(ENTRY, DISCONTINUITY, map('a'), fragments('a'));
    await told({ ...without, 'v.m3u8': mixed, 'film.vtt': TEXT }, 'invalid');
  });
});
