import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { isobmff } from '#formats/formats.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { ffmpeg } from '../support/publications/make-publication.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { PLACES, takeApart } from '../support/verification/file-forgeries.ts';
import { asserted, hls, home, verified } from './unsigned-playlists.ts';

describe('byte ranges of a file that is signed as a whole', async () => {
  ffmpeg(
    home,
    ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=24:d=3'],
    '-c:v libx264 -preset ultrafast -g 24 -sc_threshold 0 -pix_fmt yuv420p -movflags +frag_keyframe+empty_moov+default_base_moof whole.mp4',
  );
  const signed = await signBytes(isobmff, readFileSync(join(home, 'whole.mp4')));
  const boxes = topBoxesOf(signed);
  const [first = 0, ...others] = boxes.flatMap(({ type }, at) =>
    type === 'moof' ? boxes.slice(0, at).reduce((sum, { bytes }) => sum + bytes.length, 0) : [],
  );
  const ends = [
    ...others,
    boxes.filter(({ type }) => type !== 'mfra').reduce((sum, { bytes }) => sum + bytes.length, 0),
  ];
  const ranges = [first, ...others].map(
    (start, at) => `#EXTINF:1.0,\n#EXT-X-BYTERANGE:${(ends[at] ?? 0) - start}@${start}\nwhole.mp4`,
  );
  const verify = (played: readonly string[]): Promise<Verification> =>
    verified({ 'whole.mp4': signed, 'v.m3u8': hls(`#EXT-X-MAP:URI="whole.mp4",BYTERANGE="${first}@0"`, played) });

  test('are valid where a playlist plays all of it in order, and the sentence says that nobody signed that', async () => {
    asserted(await verify(ranges), 'valid', /Media unchanged\. Nobody signed the playlists/);
  });

  test('are valid where pictures and sound have boxes of their own', async () => {
    ffmpeg(
      home,
      ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=24:d=3', '-f', 'lavfi', '-i', 'sine=d=3'],
      '-c:v libx264 -preset ultrafast -g 24 -sc_threshold 0 -pix_fmt yuv420p -c:a aac -movflags +frag_keyframe+empty_moov+default_base_moof+separate_moof apart.mp4',
    );
    const file = await signBytes(isobmff, readFileSync(join(home, 'apart.mp4')));
    const all = topBoxesOf(file);
    const at = (index: number): number => all.slice(0, index).reduce((sum, { bytes }) => sum + bytes.length, 0);
    const starts = all.flatMap(({ type }, index) => (type === 'moof' ? [at(index)] : []));
    const end = at(all.findIndex(({ type }) => type === 'mfra'));
    const start = starts[0] ?? 0;
    assert.ok(starts.length > 2, 'there are more boxes than seconds');
    const playlist = (seconds: string): string =>
      hls(`#EXT-X-MAP:URI="apart.mp4",BYTERANGE="${start}@0"`, [
        `#EXTINF:${seconds},\n#EXT-X-BYTERANGE:${end - start}@${start}\napart.mp4`,
      ]);
    asserted(await verified({ 'apart.mp4': file, 'v.m3u8': playlist('3.0') }), 'valid', /Media unchanged/);
    asserted(await verified({ 'apart.mp4': file, 'v.m3u8': playlist('6.0') }), 'invalid', /gives it 6 s/);
  });

  test('are invalid where one begins or ends inside a box', async () => {
    ffmpeg(
      home,
      ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=24:d=3'],
      '-c:v libx264 -preset ultrafast -g 24 -sc_threshold 0 -pix_fmt yuv420p -movflags +dash+frag_keyframe+empty_moov indexed.mp4',
    );
    const file = await signBytes(isobmff, readFileSync(join(home, 'indexed.mp4')));
    let offset = 0;
    const all = topBoxesOf(file).map(({ type, bytes }) => {
      offset += bytes.length;
      return { type, start: offset - bytes.length, end: offset };
    });
    const played = all.flatMap(({ type, start }, at) =>
      type === 'moof' ? [{ start, end: all[at + 1]?.end ?? 0 }] : [],
    );
    const init = { start: 0, end: all.find(({ type }) => type === 'moov')?.end ?? 0 };
    const verify = ({ map = init, ranges = played }): Promise<Verification> => {
      const inFile = ({ start, end }: typeof init): string => `${end - start}@${start}`;
      const listed = ranges.map((range) => `#EXTINF:1.0,\n#EXT-X-BYTERANGE:${inFile(range)}\nindexed.mp4`);
      return verified({
        'indexed.mp4': file,
        'v.m3u8': hls(`#EXT-X-MAP:URI="indexed.mp4",BYTERANGE="${inFile(map)}"`, listed),
      });
    };
    asserted(await verify({}), 'valid', /Media unchanged/);
    const [first, second, third] = played as [typeof init, typeof init, typeof init];
    for (const changed of [
      { ...second, start: second.start - 4 },
      { ...second, end: second.end + 4 },
    ]) {
      asserted(await verify({ ranges: [first, changed, third] }), 'invalid', /"added"/);
    }
    asserted(await verify({ map: { ...init, end: init.end + 4 } }), 'invalid', /"altered"/);
  });

  test('are invalid where they are of a file that is not there', async () => {
    const init = `#EXT-X-MAP:URI="whole.mp4",BYTERANGE="${first}@0"`;
    const gone = ranges.map((range, at) => (at === 1 ? range.replace('whole', 'gone') : range));
    const playlists = [
      hls(init, gone),
      hls(
        init,
        ranges.map((each) => each.replace('whole', 'gone')),
      ),
    ];
    for (const playlist of playlists) {
      asserted(await verified({ 'whole.mp4': signed, 'v.m3u8': playlist }), 'invalid', /"missing"/);
    }
    const other = hls(
      init.replace('whole', 'gone'),
      ranges.map((each) => each.replace('whole', 'other')),
    );
    const files = {
      'whole.mp4': signed,
      'other.mp4': Buffer.alloc(signed.length),
      'v.m3u8': hls(init, ranges),
      'w.m3u8': other,
    };
    asserted(await verified(files), 'invalid', /"missing"|"unsigned"/);
  });

  test('are invalid with other bytes beside the manifest of the file', async () => {
    const file = await takeApart(signed);
    const forged = PLACES.isobmff['inside']?.(file, Buffer.from('media'), 500) as Buffer;
    const playlist = hls(`#EXT-X-MAP:URI="whole.mp4",BYTERANGE="${first}@0"`, ranges);
    asserted(await verified({ 'whole.mp4': forged, 'v.m3u8': playlist }), 'invalid', /Changed after signing/);
  });

  const segments = [first, ...others].map((start, at) => `<SegmentURL mediaRange="${start}-${(ends[at] ?? 0) - 1}"/>`);
  const list = (attributes: string): string =>
    `<SegmentList timescale="1" duration="1"${attributes}><Initialization range="0-${first - 1}"/>${segments.join('')}</SegmentList>`;
  const verifyMpd = (duration: string, attributes = ''): Promise<Verification> =>
    verified({
      'whole.mp4': signed,
      'v.mpd': `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="${duration}"><Period><AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="1"><BaseURL>whole.mp4</BaseURL>${list(attributes)}</Representation></AdaptationSet></Period></MPD>`,
    });

  test('are valid where an MPD plays all of it, and invalid where it ends early or begins late', async () => {
    asserted(await verifyMpd('PT3S'), 'valid', /Media unchanged/);
    asserted(await verifyMpd('PT1S'), 'invalid', /end|cut/i);
    asserted(await verifyMpd('PT3S', ' presentationTimeOffset="1"'), 'invalid', /begin|cut|offset/i);
  });

  for (const [what, played, problem] of [
    ['its first fragment left out', ranges.slice(1), /"missing":2/],
    ['its last fragment left out', ranges.slice(0, -1), /"missing":2/],
    ['two fragments in another order', ranges.toReversed(), /"reordered":2/],
    ['a fragment twice', [...ranges, ranges[0] ?? ''], /"added":1/],
    ['durations of twice as much', ranges.map((each) => each.replace('1.0', '2.0')), /gives it 2 s, and it lasts 1 s/],
    [
      'the duration of a fragment cut',
      [ranges[0]?.replace('1.0', '0.5') ?? '', ...ranges.slice(1)],
      /0.5 s shorter than the media/,
    ],
    [
      'a discontinuity inside',
      [ranges[0] ?? '', `#EXT-X-DISCONTINUITY\n${ranges[1]}`, ...ranges.slice(2)],
      /discontinuity/i,
    ],
    [
      'all of them in one range of half the duration',
      [`#EXTINF:1.5,\n#EXT-X-BYTERANGE:${(ends.at(-1) ?? 0) - first}@${first}\nwhole.mp4`],
      /shorter than the media/,
    ],
    [
      'the end of a fragment cut off',
      [ranges[0]?.replace(/RANGE:\d+/, 'RANGE:1000') ?? '', ...ranges.slice(1)],
      /"missing":1/,
    ],
  ] as const) {
    test(`are invalid with ${what}`, async () => {
      asserted(await verify(played), 'invalid', problem);
    });
  }
});
