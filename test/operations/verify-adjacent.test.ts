import { join } from 'node:path';
import { describe, test } from 'node:test';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { asserted, type Files, hls, home, signedOf, TIMESCALE, verified } from './unsigned-playlists.ts';

// Files beside the segments that an MPD lists: players count segments by durations, and some count more.

const film = makeFfmpegDash(makeFilm(home), join(home, 'dash'), '-seg_duration 1 -use_timeline 1 -use_template 1');
const files: Files = Object.fromEntries(
  Object.entries(filesAt(film)).map(([path, bytes]) => [path, Buffer.from(bytes)]),
);
const MPD = 'manifest.mpd';
const text = `${files[MPD]}`;
const [sound = ''] = text.match(/<AdaptationSet id="1"[\s\S]*?<\/AdaptationSet>/) ?? [];
/** The MPD with pictures that a template addresses by these attributes and this timeline, for a duration. */
const mpd = (duration: string, attributes: string, timeline = '', further = ''): Buffer =>
  Buffer.from(`<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="${duration}" minBufferTime="PT2S"><Period id="0">
<AdaptationSet contentType="video"><Representation id="0" mimeType="video/mp4" bandwidth="100000">
<SegmentTemplate ${attributes} initialization="init-stream0.m4s">${timeline}</SegmentTemplate>
</Representation></AdaptationSet>${sound}${further}</Period></MPD>
`);
const NUMBERS = 'media="chunk-stream0-$Number%05d$.m4s"';
const byDuration = `timescale="1" duration="1" startNumber="1" ${NUMBERS}`;
const open = `<SegmentTimeline><S t="0" d="${TIMESCALE}" r="-1"/></SegmentTimeline>`;
const closed = open.replace('-1', '5');
const signed = await signedOf(files, MPD);
const foreign = files['chunk-stream1-00001.m4s'] as Buffer;
const chunk = (number: number): string => `chunk-stream0-0000${number}.m4s`;
const MEDIA = 'media.m3u8';
const listed = (first: number, last: number): string[] =>
  [1, 2, 3, 4, 5, 6, 7].slice(first - 1, last).map((number) => `#EXTINF:1.000000,\n${chunk(number)}`);
const played = (path: string): RegExp =>
  new RegExp(`some players count more segments, and play \\\\+"${path}\\\\+" too`);

describe('a file that nobody signed makes an MPD ambiguous', () => {
  for (const [name, path, playlist] of [
    ['behind segments of a common duration', chunk(7), mpd('PT6.0000005S', byDuration)],
    ['behind segments whose durations are exact', chunk(7), mpd('PT6S', byDuration)],
    ['before segments of a common duration', chunk(0), mpd('PT6S', byDuration)],
    [
      'behind segments that repeat until the end',
      chunk(7),
      mpd('PT6.00001S', `timescale="${TIMESCALE}" startNumber="1" ${NUMBERS}`, open),
    ],
    [
      'as number 0 where no number is that of the first',
      chunk(0),
      mpd('PT6S', `timescale="${TIMESCALE}" ${NUMBERS}`, closed),
    ],
  ] as const) {
    test(name, async () => {
      asserted(await verified({ ...signed, [MPD]: playlist }), 'valid', /Media unchanged/);
      asserted(await verified({ ...signed, [MPD]: playlist, [path]: foreign }), 'invalid', played(path));
    });
  }

  test('behind segments that are named by their times', async () => {
    const named = Object.fromEntries(
      [1, 2, 3, 4, 5, 6].map((number) => [`t${(number - 1) * TIMESCALE}.m4s`, files[chunk(number)] as Buffer]),
    );
    const playlist = mpd('PT6S', `timescale="${TIMESCALE}" media="t$Time$.m4s"`, open);
    const others = Object.entries(files).filter(([path]) => !path.startsWith('chunk-stream0'));
    const media = await signedOf({ ...Object.fromEntries(others), ...named, [MPD]: playlist }, MPD);
    const path = `t${6 * TIMESCALE}.m4s`;
    asserted(await verified(media), 'valid', /Media unchanged/);
    asserted(await verified({ ...media, [path]: foreign }), 'invalid', played(path));
    // ffmpeg passes over as many as the number says, and so goes on behind the last.
    const numbered = mpd('PT6S', `timescale="${TIMESCALE}" startNumber="1" media="t$Time$.m4s"`, closed);
    asserted(await verified({ ...media, [MPD]: numbered, [path]: foreign }), 'invalid', played(path));
  });

  test('among segments that are named by times which some players count anew where they repeat', async () => {
    const named = [1, 2, 3, 4, 5, 6].map((number): [string, Buffer] => [
      `t${(number - 1) * TIMESCALE}.m4s`,
      files[chunk(number)] as Buffer,
    ]);
    const times = `<SegmentTimeline><S t="0" d="${TIMESCALE}"/><S d="${TIMESCALE + 1}" r="-1"/></SegmentTimeline>`;
    const playlist = mpd('PT6S', `timescale="${TIMESCALE}" media="t$Time$.m4s"`, times);
    const moved = named.map(([path, bytes], index): [string, Buffer] => [
      index < 2 ? path : `t${index * TIMESCALE + index - 1}.m4s`,
      bytes,
    ]);
    const others = Object.entries(files).filter(([path]) => !path.startsWith('chunk-stream0'));
    const media = await signedOf({ ...Object.fromEntries([...others, ...moved]), [MPD]: playlist }, MPD);
    const path = `t${2 * (TIMESCALE + 1)}.m4s`;
    asserted(await verified(media), 'valid', /Media unchanged/);
    asserted(await verified({ ...media, [path]: foreign }), 'invalid', played(path));
  });

  test('behind text', async () => {
    const template = 'timescale="1" duration="3" startNumber="1" media="text$Number$.vtt"';
    const set = `<AdaptationSet contentType="text"><Representation id="t" mimeType="text/vtt" bandwidth="1"><SegmentTemplate ${template}/></Representation></AdaptationSet>`;
    const vtt = Buffer.from('WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n');
    const withText = {
      ...signed,
      [MPD]: mpd('PT6S', byDuration, '', set),
      'text1.vtt': vtt,
      'text2.vtt': vtt,
    };
    asserted(await verified(withText), 'valid', /Media unchanged/);
    asserted(await verified({ ...withText, 'text3.vtt': vtt }), 'invalid', played('text3.vtt'));
  });

  for (const [name, path] of [
    ['the page of a folder', `${chunk(7)}/index.html`],
    ['a compressed copy', `${chunk(7)}.gz`],
    ['a file whose name differs by capitals', chunk(7).toUpperCase()],
    ['a compressed copy whose name differs by capitals', `${chunk(7).toUpperCase()}.gz`],
  ] as const) {
    test(`as ${name} that some servers send for the one behind the last segment`, async () => {
      const edited = { ...signed, [MPD]: mpd('PT6S', byDuration), [path]: foreign };
      asserted(await verified(edited), 'invalid', /"ambiguous"/);
    });

    test(`as ${name} that some servers send for a gap`, async () => {
      const gap = hls(`#EXT-X-MAP:URI="init-stream0.m4s"`, ...listed(1, 6), '#EXT-X-GAP', ...listed(7, 7));
      asserted(await verified({ ...signed, [MEDIA]: gap }), 'valid', /Media unchanged/);
      asserted(await verified({ ...signed, [MEDIA]: gap, [path]: foreign }), 'invalid', /"ambiguous"/);
    });
  }

  test('although it is a copy of a signed fragment', async () => {
    const copied = { ...signed, [MPD]: mpd('PT6S', byDuration), [chunk(7)]: signed[chunk(3)] as Buffer };
    asserted(await verified(copied), 'invalid', played(chunk(7)));
  });
});

describe('a file further behind the segments of a period makes an MPD ambiguous', () => {
  const second = files['init-stream0.m4s'] as Buffer;
  const pictures = Object.fromEntries(Object.entries(files).filter(([path]) => path.includes('stream0')));
  const renamed = Object.entries(pictures).map(([path, bytes]): [string, Buffer] => [path, bytes]);
  const period = (
    id: number,
    seconds: number,
    number: number,
    init: string,
    media: string,
  ) => `<Period id="${id}" duration="PT${seconds}S">
<AdaptationSet contentType="video"><Representation id="0" mimeType="video/mp4" bandwidth="100000">
<SegmentTemplate timescale="1" duration="1" startNumber="${number}" presentationTimeOffset="${number - 1}" ${media}
  initialization="${init}"/></Representation></AdaptationSet></Period>`;
  const playlist = `<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S" minBufferTime="PT2S">${period(1, 4, 1, 'init-stream0.m4s', NUMBERS)}${period(2, 2, 5, 'init-second.m4s', 'media="second-$Number$.m4s"')}</MPD>
`;
  const media = Object.fromEntries(
    renamed.map(([path, bytes]) => [path.replace(/^chunk-stream0-0000([56])/, 'second-$1'), bytes]),
  );

  test('where players count those of all periods in the longest one', async () => {
    const both = await signedOf({ ...media, 'init-second.m4s': second, [MPD]: Buffer.from(playlist) }, MPD);
    asserted(await verified(both), 'valid', /Media unchanged/);
    asserted(await verified({ ...both, [chunk(6)]: foreign }), 'invalid', played(chunk(6)));
  });
});

test('a fragment that was signed there may be beside those that an MPD lists', async () => {
  const template = 'startNumber="1" initialization="init-stream1.m4s" media="chunk-stream1-$Number%05d$.m4s"';
  const averaged = sound.replace(
    /<SegmentTemplate[\s\S]*<\/SegmentTemplate>/,
    `<SegmentTemplate timescale="1" duration="1" ${template}/>`,
  );
  const playlist = Buffer.from(`${mpd('PT6S', byDuration)}`.replace(sound, averaged));
  const media = { ...signed, [MPD]: playlist };
  asserted(await verified(media), 'valid', /Media unchanged/);
  const other = { ...media, 'chunk-stream1-00007.m4s': signed['chunk-stream1-00002.m4s'] as Buffer };
  asserted(await verified(other), 'invalid', played('chunk-stream1-00007.m4s'));
});

test('segments of a common duration by ffmpeg are valid', async () => {
  const averaged = makeFfmpegDash(join(home, 'film.mp4'), join(home, 'averaged'), '-seg_duration 1 -use_timeline 0');
  const made = Object.fromEntries(Object.entries(filesAt(averaged)).map(([path, bytes]) => [path, Buffer.from(bytes)]));
  asserted(await verified(await signedOf(made, MPD)), 'valid', /Media unchanged/);
});

test('numbers that go on in the next period, behind another init segment, are valid', async () => {
  const period = (number: number, init: string) => `<Period id="${number}" duration="PT3S">
<AdaptationSet contentType="video"><Representation id="0" mimeType="video/mp4" bandwidth="100000">
<SegmentTemplate timescale="1" duration="1" startNumber="${number}" presentationTimeOffset="${number - 1}" ${NUMBERS}
  initialization="${init}"/></Representation></AdaptationSet></Period>`;
  const periods = `${period(1, 'init-stream0.m4s')}${period(4, 'init-second.m4s')}`;
  const playlist = `<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S" minBufferTime="PT2S">${periods}</MPD>
`;
  const pictures = Object.fromEntries(Object.entries(files).filter(([path]) => path.includes('stream0')));
  const second = files['init-stream0.m4s'] as Buffer;
  const both = await signedOf({ ...pictures, 'init-second.m4s': second, [MPD]: Buffer.from(playlist) }, MPD);
  asserted(await verified(both), 'valid', /Media unchanged/);
});
