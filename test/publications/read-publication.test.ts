import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertRefused, empty, hls, mpd, period, read, renditionsOf, segments } from './make-playlists.ts';

/** A playlist of one file: its init segment, a range with a start and one without, 60 bytes together. */
function hlsOfRanges(): string {
  return hls(
    '#EXT-X-MAP:URI="v.mp4",BYTERANGE="10@0"',
    '#EXTINF:4,',
    '#EXT-X-BYTERANGE:20@10',
    'v.mp4',
    '#EXTINF:4,',
    '#EXT-X-BYTERANGE:30',
    'v.mp4',
  );
}

describe('HLS', () => {
  test('decides the order by the playlist, whatever the names say', async () => {
    const files = { 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('c.m4s', 'a.m4s', 'b.m4s')) };
    const found = await renditionsOf({ ...files, ...empty('init.mp4', 'a.m4s', 'b.m4s', 'c.m4s') });
    assert.deepEqual(found, ['init.mp4: c.m4s a.m4s b.m4s']);
  });

  test('follows a multivariant playlist into folders that repeat file names', async () => {
    const media = hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s', '2.m4s'));
    const master = [
      '#EXTM3U',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="audio/index.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO="a"',
      'video/index.m3u8',
      '',
    ].join('\n');
    const files = {
      'master.m3u8': master,
      'video/index.m3u8': media,
      'audio/index.m3u8': media,
      ...empty(
        'video/init.mp4',
        'video/1.m4s',
        'video/2.m4s',
        'audio/init.mp4',
        'audio/1.m4s',
        'audio/2.m4s',
        'poster.jpg',
      ),
    };
    const publication = await read(files, { playlist: 'master.m3u8' });
    assert.equal(publication.playlists.length, 3);
    assert.deepEqual(publication.otherPaths, ['poster.jpg']);
    assert.deepEqual(await renditionsOf(files, { playlist: 'master.m3u8' }), [
      'audio/init.mp4: audio/1.m4s audio/2.m4s',
      'video/init.mp4: video/1.m4s video/2.m4s',
    ]);
  });

  test('gives each fragment the map in force, and joins what returns to an earlier one', async () => {
    const text = hls(
      '#EXT-X-MAP:URI="init_a.mp4"',
      ...segments('1.m4s'),
      '#EXT-X-DISCONTINUITY',
      '#EXT-X-MAP:URI="init_b.mp4"',
      ...segments('2.m4s'),
      '#EXT-X-DISCONTINUITY',
      '#EXT-X-MAP:URI="init_a.mp4"',
      ...segments('3.m4s'),
    );
    const found = await renditionsOf({
      'p.m3u8': text,
      ...empty('init_a.mp4', 'init_b.mp4', '1.m4s', '2.m4s', '3.m4s'),
    });
    assert.deepEqual(found, ['init_a.mp4: 1.m4s 3.m4s', 'init_b.mp4: 2.m4s']);
  });

  test('of key frames alone is a rendition where they are whole fragments, and else leaves the order to names', async () => {
    const keyFrames = (...ranges: string[]) =>
      hls(
        '#EXT-X-I-FRAMES-ONLY',
        '#EXT-X-MAP:URI="init.mp4"',
        ...ranges.flatMap((range, at) => ['#EXTINF:4,', ...(range === '' ? [] : [range]), `${2 - at}.m4s`]),
      );
    const media = { 'init.mp4': '', '1.m4s': new Uint8Array(30), '2.m4s': new Uint8Array(30) };
    assert.deepEqual(await renditionsOf({ 'i.m3u8': keyFrames('', ''), ...media }), ['init.mp4: 2.m4s 1.m4s']);
    const inParts = keyFrames('#EXT-X-BYTERANGE:10@5', '#EXT-X-BYTERANGE:10@5');
    assert.deepEqual(await renditionsOf({ 'i.m3u8': inParts, ...media }), ['init.mp4: 1.m4s 2.m4s']);
  });

  test('reads byte ranges, with and without a start', async () => {
    const text = hlsOfRanges();
    const found = await renditionsOf({ 'p.m3u8': text, 'v.mp4': new Uint8Array(60) }, { init: '*.mp4', frag: '*.mp4' });
    assert.deepEqual(found, ['v.mp4 (bytes 0-9): v.mp4 (bytes 10-29) v.mp4 (bytes 30-59)']);
    await assertRefused(
      'BYTE_RANGE_PAST_END',
      { 'p.m3u8': text, 'v.mp4': new Uint8Array(58) },
      { init: '*.mp4', frag: '*.mp4' },
      10,
    );
  });

  test('takes a byte range that ends one byte behind its file to end with it, as servers do, and says so', async () => {
    const ofHls = hlsOfRanges();
    const ofDash = mpd(
      period(
        '<SegmentList duration="4"><Initialization sourceURL="v.mp4" range="0-9"/><SegmentURL media="v.mp4" mediaRange="10-29"/><SegmentURL media="v.mp4" mediaRange="30-59"/></SegmentList>',
      ),
    );
    const media = { 'v.mp4': new Uint8Array(59) };
    for (const playlists of [{ 'p.m3u8': ofHls }, { 'm.mpd': ofDash }, { 'p.m3u8': ofHls, 'm.mpd': ofDash }]) {
      const patterns = { init: '*.mp4', frag: '*.mp4' };
      assert.deepEqual(await renditionsOf({ ...playlists, ...media }, patterns), [
        'v.mp4 (bytes 0-9): v.mp4 (bytes 10-29) v.mp4 (bytes 30-58)',
      ]);
      const { warnings } = await read({ ...playlists, ...media }, patterns);
      assert.equal(warnings.length, 1, warnings.join());
    }
  });

  test('finds names with spaces, per cent signs, question marks and accents, decoded once', async () => {
    const uris = ['a%20b.m4s', 'a c.m4s', '1%25.m4s', '%233%3F.m4s', 'cafe\u0301.m4s', 'd.m4s?t=x', 'e%2520f.m4s'];
    const files = { 'p.m3u8': hls('#EXT-X-MAP:URI="init%20x.mp4"', ...segments(...uris)) };
    const names = ['a b.m4s', 'a c.m4s', '1%.m4s', '#3?.m4s', 'cafe\u0301.m4s', 'd.m4s', 'e%20f.m4s'];
    const found = await read({ ...files, ...empty('init x.mp4', ...names) });
    assert.deepEqual(
      found.renditions[0]?.fragments.map(({ path }) => path),
      names,
    );
  });

  test('takes an address from the root of a server for one from the root of the folder, where that is there', async () => {
    const files = {
      'v/p.m3u8': hls('#EXT-X-MAP:URI="/v/init.mp4"', ...segments('/v/1.m4s', '2.m4s')),
      'm.mpd': mpd(
        `<BaseURL>/v/</BaseURL>${period('<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="5"/>')}`,
      ),
      ...empty('v/init.mp4', 'v/1.m4s', 'v/2.m4s'),
    };
    assert.deepEqual(await renditionsOf(files), ['v/init.mp4: v/1.m4s v/2.m4s']);
    for (const address of ['/elsewhere/1.m4s', '/v/../../1.m4s', '//v/1.m4s']) {
      const text = hls('#EXT-X-MAP:URI="init.mp4"', ...segments(address));
      await assertRefused('PLAYLIST_LEAVES_FOLDER', { 'v/p.m3u8': text, ...empty('v/init.mp4', '1.m4s', 'v/1.m4s') });
    }
  });

  test('writes out the variables that a playlist defines', async () => {
    const master = [
      '#EXTM3U',
      '#EXT-X-DEFINE:NAME="where",VALUE="v"',
      '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.64002a"',
      '{$where}/p.m3u8',
    ].join('\n');
    const media = hls(
      '#EXT-X-DEFINE:NAME="n",VALUE="a b"',
      '#EXT-X-MAP:URI="init-{$n}.mp4"',
      ...segments('{$n}/1.m4s'),
    );
    const files = { 'm.m3u8': master, 'v/p.m3u8': media, ...empty('v/init-a b.mp4', 'v/a b/1.m4s') };
    assert.deepEqual(await renditionsOf(files, { playlist: 'm.m3u8' }), ['v/init-a b.mp4: v/a b/1.m4s']);
  });

  test('is not confused by apostrophes and quoted commas', async () => {
    const master = [
      '#EXTM3U',
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Director's cut, long",URI="it's.m3u8"`,
      '#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO="a"',
      "it's.m3u8",
    ].join('\n');
    const media = hls(`#EXT-X-MAP:URI="it's, init.mp4"`, ...segments("it's.m4s"));
    const found = await renditionsOf({ 'm.m3u8': master, "it's.m3u8": media, ...empty("it's, init.mp4", "it's.m4s") });
    assert.deepEqual(found, ["it's, init.mp4: it's.m4s"]);
  });

  test('takes tags behind the end of a playlist for no segment', async () => {
    const text = hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s'));
    const files = {
      'p.m3u8': `${text}\n#EXT-X-DATERANGE:ID="ad",START-DATE="2000-01-01T00:00:02Z",DURATION=5.0\n`,
      ...empty('init.mp4', '1.m4s'),
    };
    assert.deepEqual(await renditionsOf(files), ['init.mp4: 1.m4s']);
  });

  test('leaves I-frame playlists to the fragments they point into', async () => {
    const files = {
      'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')),
      'i.m3u8': hls('#EXT-X-I-FRAMES-ONLY', '#EXT-X-MAP:URI="init.mp4"', '#EXTINF:4,', '#EXT-X-BYTERANGE:5@2', '1.m4s'),
      'init.mp4': '',
      '1.m4s': new Uint8Array(10),
    };
    assert.deepEqual(await renditionsOf(files), ['init.mp4: 1.m4s']);
  });

  test('carries text segments through with a warning', async () => {
    const files = {
      'v.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')),
      't.m3u8': hls(...segments('1.vtt')),
      ...empty('init.mp4', '1.m4s', '1.vtt'),
    };
    const publication = await read(files, { frag: '*.{m4s,vtt}' });
    assert.deepEqual(publication.otherPaths, ['1.vtt']);
    assert.equal(publication.warnings.length, 1);
  });

  test('reads 30,000 segments that each repeat their map', async () => {
    const names = Array.from({ length: 30_000 }, (_, index) => `${index}.m4s`);
    const lines = names.flatMap((name) => ['#EXT-X-DISCONTINUITY', '#EXT-X-MAP:URI="init.mp4"', ...segments(name)]);
    const publication = await read({ 'p.m3u8': hls(...lines), ...empty('init.mp4', ...names) });
    assert.deepEqual(
      publication.renditions[0]?.fragments.map(({ path }) => path),
      names,
    );
  });

  test('reads 100,000 lines', async () => {
    const names = Array.from({ length: 50_000 }, (_, index) => `${index}.m4s`);
    const files = { 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments(...names)), ...empty('init.mp4', ...names) };
    assert.equal((await read(files)).renditions[0]?.fragments.length, 50_000);
  });
});

describe('DASH', () => {
  test('fills templates by number, with widths and identifiers', async () => {
    const template =
      '<SegmentTemplate initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/$Bandwidth$-$Number%03d$.m4s" startNumber="9" duration="5" timescale="1"/>';
    const found = await renditionsOf({
      'm.mpd': mpd(period(template)),
      ...empty('v/init.mp4', 'v/1000-009.m4s', 'v/1000-010.m4s'),
    });
    assert.deepEqual(found, ['v/init.mp4: v/1000-009.m4s v/1000-010.m4s']);
  });

  test('writes timelines out, with times past 2^53, gaps and repetition to the period end', async () => {
    const template = (
      first: string,
    ) => `<SegmentTemplate timescale="10" presentationTimeOffset="18000000000000000" initialization="init.mp4" media="$Time$.m4s"><SegmentTimeline>
      <S t="18000000000000${first}" d="20" r="1"/><S d="8"/><S t="18000000000000060" d="20" r="-1"/></SegmentTimeline></SegmentTemplate>`;
    const times = ['002', '022', '042', '060', '080'].map((end) => `18000000000000${end}.m4s`);
    const found = await renditionsOf({ 'm.mpd': mpd(period(template('002'))), ...empty('init.mp4', ...times) });
    assert.deepEqual(found, [`init.mp4: ${times.join(' ')}`]);
    const odd = ['001', '021', '041', '060', '080'].map((end) => `18000000000000${end}.m4s`);
    await assertRefused('PLAYLIST_AMBIGUOUS', { 'm.mpd': mpd(period(template('001'))), ...empty('init.mp4', ...odd) });
  });

  test('misses nothing in a timeline but what begins at the end of its period, or is cut by it', async () => {
    const timeline = (entries: string) =>
      mpd(
        period(
          `<SegmentTemplate initialization="init.mp4" media="$Number$.m4s"><SegmentTimeline>${entries}</SegmentTimeline></SegmentTemplate>`,
        ),
        'mediaPresentationDuration="PT8.4S"',
      );
    const files = empty('init.mp4', '1.m4s', '2.m4s', '3.m4s', '4.m4s');
    const all = ['init.mp4: 1.m4s 2.m4s 3.m4s 4.m4s'];
    assert.deepEqual(await renditionsOf({ 'm.mpd': timeline('<S t="0" d="2" r="-1"/>'), ...files }), all);
    assert.deepEqual(await renditionsOf({ 'm.mpd': timeline('<S t="0" d="3" r="5"/>'), ...files }), all);
    await assertRefused('PLAYLIST_FILE_MISSING', { 'm.mpd': timeline('<S t="0" d="1" r="4"/>'), ...files });
    await assertRefused('PLAYLIST_FILE_MISSING', { 'm.mpd': timeline('<S t="0" d="1" r="-1"/>'), ...files });
  });

  test('takes as many as there are where a live timeline repeats to an end that is not known', async () => {
    const template =
      '<SegmentTemplate initialization="init.mp4" media="$Time$.m4s"><SegmentTimeline><S t="4" d="2"/><S d="3" r="-1"/></SegmentTimeline></SegmentTemplate>';
    const files = { 'm.mpd': mpd(period(template), 'type="dynamic"'), ...empty('init.mp4', '4.m4s', '6.m4s', '9.m4s') };
    assert.deepEqual(await renditionsOf(files), ['init.mp4: 4.m4s 6.m4s 9.m4s']);
    const { '6.m4s': _, ...gone } = files as Record<string, string>;
    await assertRefused('PLAYLIST_FILE_MISSING', gone);
  });

  test('nests BaseURLs over several periods and joins what shares an init segment', async () => {
    const template = (first: number) =>
      `<SegmentTemplate initialization="../init.mp4" media="$Number$.m4s" startNumber="${first}" duration="5"/>`;
    const set = (first: number) =>
      `<AdaptationSet mimeType="video/mp4"><BaseURL>b%20c/</BaseURL><Representation id="v" bandwidth="1">${template(first)}</Representation></AdaptationSet>`;
    const text = mpd(
      `<BaseURL>a/</BaseURL><Period duration="PT10S">${set(1)}</Period><Period start="PT10S">${set(3)}</Period>`,
      'mediaPresentationDuration="PT20S"',
    );
    const found = await renditionsOf({
      'm.mpd': text,
      ...empty('a/init.mp4', 'a/b c/1.m4s', 'a/b c/2.m4s', 'a/b c/3.m4s', 'a/b c/4.m4s'),
    });
    assert.deepEqual(found, ['a/init.mp4: a/b c/1.m4s a/b c/2.m4s a/b c/3.m4s a/b c/4.m4s']);
  });

  test('reads segment lists with addresses and with byte ranges', async () => {
    const list = `<SegmentList duration="5"><Initialization range="0-9"/><SegmentURL mediaRange="10-19"/><SegmentURL mediaRange="20-39"/></SegmentList>`;
    const text = mpd(
      period('', `<Representation id="v" bandwidth="1"><BaseURL>v.mp4</BaseURL>${list}</Representation>`),
    );
    const found = await renditionsOf({ 'm.mpd': text, 'v.mp4': new Uint8Array(40) }, { init: '*.mp4', frag: '*.mp4' });
    assert.deepEqual(found, ['v.mp4 (bytes 0-9): v.mp4 (bytes 10-19) v.mp4 (bytes 20-39)']);
  });

  test('takes every file that a live template matches, in number order', async () => {
    const template = '<SegmentTemplate initialization="init.mp4" media="s$Number$.m4s" duration="5"/>';
    const text = mpd(period(template), 'type="dynamic"');
    const found = await renditionsOf({ 'm.mpd': text, ...empty('init.mp4', 's10.m4s', 's9.m4s', 's11.m4s', 'x.jpg') });
    assert.deepEqual(found, ['init.mp4: s9.m4s s10.m4s s11.m4s']);
  });

  test('lets the last of a counted template be missing, but no other', async () => {
    const template = '<SegmentTemplate initialization="init.mp4" media="s$Number$.m4s" duration="4"/>';
    const files = { 'm.mpd': mpd(period(template)), ...empty('init.mp4', 's1.m4s') };
    assert.deepEqual(await renditionsOf({ ...files, 's2.m4s': '' }), ['init.mp4: s1.m4s s2.m4s']);
    await assertRefused('PLAYLIST_FILE_MISSING', files);
  });
});

describe('several playlists', () => {
  const template = '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="5"/>';
  const files = { 'm.mpd': mpd(period(template)), ...empty('init.mp4', '1.m4s', '2.m4s', '3.m4s') };

  test('that name the same files are about one rendition', async () => {
    const playlist = hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s', '3.m4s', '2.m4s'));
    assert.deepEqual(await renditionsOf({ ...files, 'p.m3u8': playlist }), ['init.mp4: 1.m4s 3.m4s 2.m4s']);
  });

  test('that order fragments differently are refused', async () => {
    const playlist = hls('#EXT-X-MAP:URI="init.mp4"', ...segments('2.m4s', '1.m4s'));
    await assertRefused('FRAGMENT_ORDER_CONFLICT', { 'a.m3u8': playlist, ...files }, {});
  });

  test('that give a fragment to two init segments are refused with the line', async () => {
    const playlist = hls('#EXT-X-MAP:URI="init2.mp4"', ...segments('2.m4s'));
    await assertRefused('FRAGMENT_IN_TWO_RENDITIONS', { ...files, 'p.m3u8': playlist, 'init2.mp4': '' }, {}, 6);
  });
});

test('a file without segments that an MPD names and no pattern matches is told, but not subtitles as text', async () => {
  const set = (type: string, content: string): string =>
    `<AdaptationSet mimeType="${type}"><Representation id="${type}" bandwidth="1">${content}</Representation></AdaptationSet>`;
  const template = '<SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="1"/>';
  const sets = [
    set('video/mp4', template),
    set('audio/mp4', '<BaseURL>sound.mp4</BaseURL>'),
    set('text/vtt', '<BaseURL>text.vtt</BaseURL>'),
  ];
  const mpd = `<MPD mediaPresentationDuration="PT1S"><Period>${sets.join('')}</Period></MPD>`;
  const { warnings } = await read({ 'm.mpd': mpd, 'init.mp4': '', '1.m4s': '', 'sound.mp4': '', 'text.vtt': '' });
  assert.deepEqual(
    warnings.map(({ reason, details }) => [reason, details]),
    [['RENDITIONS_NOT_SIGNED', { names: ['sound.mp4'], count: 1 }]],
  );
});

test('renditions that no pattern matches are told, but not subtitles as text and pictures', async () => {
  const text = hls(...segments('1.vtt'));
  const files = {
    'v.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('1.m4s')),
    'ts.m3u8': hls(...segments('1.ts', '2.ts')),
    'other.m3u8': hls('#EXT-X-MAP:URI="other.mp4"', ...segments('1.mp4')),
    'text.m3u8': text,
    'pictures.m3u8': hls(...segments('1.jpg')),
    ...empty('init.mp4', '1.m4s', '1.ts', '2.ts', 'other.mp4', '1.mp4', '1.vtt', '1.jpg'),
  };
  const { warnings } = await read(files);
  const told = warnings.map(({ reason, details }) => [reason, details]);
  assert.deepEqual(told, [['RENDITIONS_NOT_SIGNED', { names: ['1.ts', 'other.mp4'], count: 2 }]]);
});

describe('files that no playlist names', () => {
  const playlist = { 'p.m3u8': hls() };

  test('go by folder and natural order', async () => {
    const paths = ['a/init.mp4', 'a/s10.m4s', 'a/s9.m4s', 'b/init.mp4', 'b/media/1.m4s'];
    const found = await renditionsOf({ ...playlist, ...empty(...paths) });
    assert.deepEqual(found, ['a/init.mp4: a/s9.m4s a/s10.m4s', 'b/init.mp4: b/media/1.m4s']);
  });

  test('go by name where init segments share a folder', async () => {
    // Both patterns claim the init segments: their first box decides.
    const moov = Buffer.from('\0\0\0\x10moov\0\0\0\0\0\0\0\0', 'latin1');
    const inits = { 'init-stream0.m4s': moov, 'init-stream1.m4s': moov };
    const paths = ['chunk-stream1-00001.m4s', 'chunk-stream0-00001.m4s'];
    const files = { ...playlist, ...empty(...paths), ...inits };
    const found = await renditionsOf(files);
    assert.deepEqual(found, ['init-stream0.m4s: chunk-stream0-00001.m4s', 'init-stream1.m4s: chunk-stream1-00001.m4s']);
    await assertRefused('FRAGMENT_WITHOUT_INIT', { ...files, 'other.m4s': '' });
  });

  test('join a live window that has moved on', async () => {
    const live = { 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('s3.m4s', 's4.m4s')) };
    const found = await renditionsOf({ ...live, ...empty('init.mp4', 's1.m4s', 's2.m4s', 's3.m4s', 's4.m4s') });
    assert.deepEqual(found, ['init.mp4: s1.m4s s2.m4s s3.m4s s4.m4s']);
  });

  test('are told where playlists name others', async () => {
    const live = { 'p.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('s2.m4s')) };
    const reasonsOf = async (files: Record<string, string | Buffer>, patterns = {}) =>
      (await read(files, patterns)).warnings.map(({ reason, details }) => [reason, details]);
    const files = { ...live, ...empty('init.mp4', 's1.m4s', 's2.m4s') };
    assert.deepEqual(await reasonsOf(files), [['FRAGMENTS_NOT_IN_PLAYLISTS', { names: ['s1.m4s'], count: 1 }]]);
    const whole = { 'whole.m3u8': hls('#EXT-X-MAP:URI="init.mp4"', ...segments('s1.m4s', 's2.m4s')) };
    assert.deepEqual(await reasonsOf({ ...files, ...whole }, { playlist: 'p.m3u8' }), []);
    assert.deepEqual(await reasonsOf({ ...playlist, ...empty('init.mp4', 's1.m4s') }), []);
  });
});
