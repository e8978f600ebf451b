import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { isobmff } from '#formats/formats.ts';
import { readPublication } from '#publications/read-publication.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PLACES, takeApart } from '../support/verification/file-forgeries.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Playlists that nobody signed, over media that are as they were signed: their times decide what players show of it, and when.

type Files = Record<string, Buffer>;
const { signal } = new AbortController();
const home = temporaryFolder();
let count = 0;

async function verified(files: Record<string, Uint8Array | string>): Promise<Verification> {
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), files);
  return (await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'))).verification;
}

async function signedOf(files: Files, playlist: string): Promise<Files> {
  const patterns = { playlist, init: '*init*', frag: '*.m4s' };
  return await signAsOthers(files, (await readPublication(folderOf(files), patterns, signal)).renditions, {});
}

function asserted({ state, summary, publication }: Verification, expected: string, problem: RegExp): void {
  const told = JSON.stringify({ summary, publication });
  assert.equal(state, expected, told);
  assert.match(told, problem);
}

/** Three fragments of a second, `<name>0.m4s` to `<name>2.m4s`, whose media begin at a time, under `<name>init.mp4`. */
function section(name: string, size: string, startSeconds: number): Files {
  const folder = join(home, `section-${name}`);
  mkdirSync(folder);
  ffmpeg(
    folder,
    ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=24:d=3`],
    `-c:v libx264 -preset ultrafast -bf 0 -g 24 -sc_threshold 0 -pix_fmt yuv420p -f hls -hls_time 1 -hls_list_size 0 -hls_segment_type fmp4 -hls_fmp4_init_filename ${name}init.mp4 -hls_segment_filename ${name}%d.m4s unused.m3u8`,
  );
  const { 'unused.m3u8': _, ...files } = filesAt(folder);
  return Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path, movedTo(bytes, startSeconds)]));
}

/** The time that ffmpeg gives such media, in ticks per second. */
const TIMESCALE = 12288;

/** Returns a fragment that begins later (`tfdt`, ISO/IEC 14496-12 §8.8.12); other files stay. */
function movedTo(bytes: Uint8Array, seconds: number): Buffer {
  const moved = Buffer.from(bytes);
  const at = moved.indexOf('tfdt');
  if (at !== -1) moved.writeBigUInt64BE(moved.readBigUInt64BE(at + 8) + BigInt(seconds * TIMESCALE), at + 8);
  return moved;
}

const map = (name: string): string => `#EXT-X-MAP:URI="${name}init.mp4"`;
const fragments = (name: string, seconds = '1.000000'): string[] =>
  [0, 1, 2].map((number) => `#EXTINF:${seconds},\n${name}${number}.m4s`);
const DISCONTINUITY = '#EXT-X-DISCONTINUITY';

function hls(...lines: readonly (string | readonly string[])[]): string {
  return ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:1', ...lines.flat(), '#EXT-X-ENDLIST', ''].join('\n');
}

const early = section('early', '160x90', 0);
const next = section('next', '176x144', 3);
const again = section('again', '176x144', 0);
const later = section('later', '160x90', 60);

describe('sections under several init segments', () => {
  const inOrder = hls(map('early'), fragments('early'), DISCONTINUITY, map('next'), fragments('next'));
  const reversed = hls(map('next'), fragments('next'), DISCONTINUITY, map('early'), fragments('early'));

  test('whose times are those of one programme are valid in the order of these', async () => {
    const signed = await signedOf({ ...early, ...next, 'v.m3u8': Buffer.from(inOrder) }, '*.m3u8');
    asserted(await verified(signed), 'valid', /Media unchanged/);
    asserted(await verified({ ...signed, 'v.m3u8': reversed }), 'invalid', /belong elsewhere in the programme/);
  });

  test('with times of their own are valid, and the sentence says that their order was signed by nobody', async () => {
    const playlist = inOrder.replaceAll('next', 'again');
    const signed = await signedOf({ ...early, ...again, 'v.m3u8': Buffer.from(playlist) }, '*.m3u8');
    const order = /It cannot be known in which order \\"v\.m3u8\\" should play/;
    asserted(await verified(signed), 'valid', order);
    asserted(await verified({ ...signed, 'v.m3u8': reversed.replaceAll('next', 'again') }), 'valid', order);
  });
});

describe('sections of one programme', async () => {
  const sizes = { a: '160x90', b: '176x144', c: '192x108' };
  const media = Object.entries(sizes).map(([name, size], at) => section(name, size, at * 3));
  // Those of two more renditions are apart, so that nothing says in which order they play.
  const others = ['y', 'z'].flatMap((rendition) =>
    Object.entries(sizes).map(([name, size], at) => section(`${rendition}${name}`, size, at * 10)),
  );
  const files = Object.assign({}, ...media, ...others) as Files;
  const playing = (...names: string[]): string =>
    hls(...names.flatMap((name, at) => [...(at === 0 ? [] : [DISCONTINUITY]), map(name), ...fragments(name)]));
  const playlists = {
    'v.m3u8': playing('a', 'b', 'c'),
    'y.m3u8': playing('ya', 'yb', 'yc'),
    'z.m3u8': playing('za', 'zb', 'zc'),
    'm.m3u8':
      '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="n",URI="z.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="g"\ny.m3u8\n',
  };
  const texts = Object.entries(playlists).map(([path, text]) => [path, Buffer.from(text)]);
  const signed = await signedOf({ ...files, ...Object.fromEntries(texts) }, '*.m3u8');

  test('may not be left out, although another playlist plays them', async () => {
    asserted(await verified(signed), 'valid', /Media unchanged/);
    for (const [played, other] of [
      ['ac', 'b'],
      ['ab', 'c'],
      ['bc', 'a'],
    ] as const) {
      asserted(
        await verified({ ...signed, 'v.m3u8': playing(...played), 'other.m3u8': playing(other) }),
        'invalid',
        /[abc]init\.mp4\\+", which was signed with it and plays beside it, is left out/,
      );
    }
  });

  test('may not play together with those of another part', async () => {
    const verdict = await verified({ ...signed, 'z.m3u8': playing('za', 'zc', 'zb') });
    asserted(verdict, 'invalid', /what plays together behind a discontinuity are 10 s apart/);
  });
});

test('several signed publications are invalid in one playlist that offers them', async () => {
  const of = async (names: readonly [string, string], size: string): Promise<Files> => {
    const files = Object.assign({}, ...names.map((name) => section(name, size, 0))) as Files;
    const playlists = names.map((name) => [`${name}.m3u8`, Buffer.from(hls(map(name), fragments(name)))]);
    return await signedOf({ ...files, ...Object.fromEntries(playlists) }, '*.m3u8');
  };
  const [one, other] = [await of(['p', 'q'], '160x90'), await of(['r', 's'], '176x144')];
  const master = (...names: string[]): string =>
    ['#EXTM3U', ...names.map((name) => `#EXT-X-STREAM-INF:BANDWIDTH=1\n${name}.m3u8`), ''].join('\n');
  const both = { ...one, ...other };
  const apart = { 'one.m3u8': master('p', 'q'), 'other.m3u8': master('r', 's') };
  asserted(await verified({ ...both, ...apart }), 'valid', /It has 2 manifests, and nobody signed/);
  asserted(
    await verified({ ...both, 'm.m3u8': master('p', 'q', 'r', 's') }),
    'invalid',
    /it offers media of several signed/,
  );
});

test('sections of two signed publications are invalid in one playlist', async () => {
  const alone = (name: string): Buffer => Buffer.from(hls(map(name), fragments(name)));
  const one = await signedOf({ ...early, 'v.m3u8': alone('early') }, '*.m3u8');
  const other = await signedOf({ ...again, 'v.m3u8': alone('again') }, '*.m3u8');
  const joined = hls(map('early'), fragments('early'), DISCONTINUITY, map('again'), fragments('again'));
  asserted(await verified({ ...one, ...other, 'v.m3u8': joined }), 'invalid', /several signed publications/);
});

describe('a discontinuity', async () => {
  const files = { ...early, ...Object.fromEntries(Object.entries(later).filter(([path]) => !path.includes('init'))) };
  const honest = hls(map('early'), fragments('later'), DISCONTINUITY, fragments('early'));
  const signed = await signedOf({ ...files, 'v.m3u8': Buffer.from(honest) }, '*.m3u8');

  test('may stand where the media jump in time', async () => {
    asserted(await verified(signed), 'valid', /Media unchanged/);
  });

  test('has to stand where they jump back', async () => {
    const playlist = hls(map('early'), fragments('later'), fragments('early'));
    asserted(await verified({ ...signed, 'v.m3u8': playlist }), 'invalid', /without a discontinuity/);
  });

  test('may not stand where they go on', async () => {
    const playlist = honest.replace(`${fragments('early')[1]}`, `${DISCONTINUITY}\n$&`);
    asserted(await verified({ ...signed, 'v.m3u8': playlist }), 'invalid', /a discontinuity stands before it/);
  });

  test('may stand where a key changes', async () => {
    const key = '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a"';
    const playlist = honest.replace(`${fragments('early')[1]}`, `${DISCONTINUITY}\n${key}\n$&`);
    asserted(await verified({ ...signed, 'v.m3u8': playlist }), 'valid', /Media unchanged/);
  });

  test('may not follow durations that are shorter than the media', async () => {
    const playlist = hls(map('early'), fragments('later', '0.600000'), DISCONTINUITY, fragments('early'));
    asserted(await verified({ ...signed, 'v.m3u8': playlist }), 'invalid', /are 0\.4 s shorter than the media/);
  });

  test('may not be missing where durations are that add up to less than the media', async () => {
    const only = Object.fromEntries(
      Object.entries(signed).filter(([path]) => !path.startsWith('early') || path === 'earlyinit.mp4'),
    );
    const playlist = hls(map('early'), fragments('later', '0.950000'));
    const summary = await verified({ ...only, 'v.m3u8': playlist });
    asserted(summary, 'invalid', /are 0\.15 s shorter than the media/);
  });

  test('has no part in durations that are shorter than the media of one init segment after the other', async () => {
    const parts = ['early', 'next'] as const;
    const playlist = (seconds: string) => hls(...parts.flatMap((name) => [map(name), fragments(name, seconds)]));
    const media = await signedOf({ ...early, ...next, 'v.m3u8': Buffer.from(playlist('1.000000')) }, '*.m3u8');
    asserted(await verified(media), 'valid', /Media unchanged/);
    const single = await verified({ ...media, 'v.m3u8': playlist('0.980000') });
    asserted(single, 'invalid', /are 0\.12 s shorter than the media/);
  });

  test('may follow durations that are rounded', async () => {
    const playlist = hls(map('early'), fragments('later', '1'), DISCONTINUITY, fragments('early', '1.0'));
    asserted(await verified({ ...signed, 'v.m3u8': playlist }), 'valid', /Media unchanged/);
  });
});

describe('an MPD', async () => {
  const OPTIONS = '-seg_duration 1 -use_timeline 1 -use_template 1';
  const film = makeFfmpegDash(makeFilm(home), join(home, 'dash'), OPTIONS);
  const files = Object.fromEntries(Object.entries(filesAt(film)).map(([path, bytes]) => [path, Buffer.from(bytes)]));
  const text = `${files['manifest.mpd']}`;
  const signed = await signedOf(files, '*.mpd');
  const edited = async (edit: (mpd: string) => string): Promise<Verification> => {
    assert.notEqual(edit(text), text);
    return await verified({ ...signed, 'manifest.mpd': edit(text) });
  };

  test('may not place a segment elsewhere than its media are', async () => {
    asserted(
      await edited((mpd) =>
        mpd.replace(/<S t="0" d="(\d+)" r="(\d+)"/, (_, ticks, repeats) => {
          const t = Number(ticks) * 1.5;
          return `<S t="0" d="${ticks}" /><S t="${t}" d="${ticks}" r="${Number(repeats) - 1}"`;
        }),
      ),
      'invalid',
      /the playlist places it 0\.5 s behind its own start/,
    );
  });

  test('may not let durations add up to other times', async () => {
    asserted(
      await edited((mpd) => mpd.replace(/ d="(\d+)"/g, (_, ticks) => ` d="${Math.round(Number(ticks) * 1.1)}"`)),
      'invalid',
      /the playlist places it/,
    );
  });

  test('may not have its periods overlap', async () => {
    asserted(
      await edited((mpd) =>
        mpd
          .replace('</Period>', '</Period><Period id="1" start="PT3S"></Period>')
          .replace('<Period ', '<Period duration="PT6.1S" '),
      ),
      'invalid',
      /the period ends 3\.1 s after the next one begins/,
    );
  });

  test('may not have players leave out its sound', async () => {
    const property = '<EssentialProperty schemeIdUri="urn:mpeg:dash:example"/>';
    asserted(
      await edited((mpd) => mpd.replace(/(<AdaptationSet[^>]*contentType="audio"[^>]*>)/, `$1${property}`)),
      'invalid',
      /it offers pictures without the sound/,
    );
  });

  test('may not play sound in another period than pictures', async () => {
    asserted(
      await edited((mpd) =>
        mpd.replace('<AdaptationSet id="1"', '</Period><Period id="1" start="PT6.1S"><AdaptationSet id="1"'),
      ),
      'invalid',
      /it offers pictures without the sound/,
    );
  });
});

describe('periods of an MPD', async () => {
  const film = makeFfmpegDash(makeFilm(home), join(home, 'periods'), '-seg_duration 1 -use_timeline 1 -use_template 1');
  const files = Object.fromEntries(Object.entries(filesAt(film)).map(([path, bytes]) => [path, Buffer.from(bytes)]));
  const signed = await signedOf(files, '*.mpd');
  const head = `${files['manifest.mpd']}`.split('<Period')[0] ?? '';
  /** Ticks of the sound at which its seven segments begin, of 48,000 a second, and at which the last one ends. */
  const SOUND = [0, 47_104, 95_232, 143_360, 191_488, 239_616, 287_744, 288_000];
  const PICTURES = [0, 1, 2, 3, 4, 5, 6].map((seconds) => seconds * TIMESCALE);

  const set = (kind: 'video' | 'audio', addressing: string): string =>
    `<AdaptationSet contentType="${kind}"><Representation id="${kind}" mimeType="${kind}/mp4" bandwidth="100000">${addressing}</Representation></AdaptationSet>`;
  /** Segments from one to another, counted from zero, by a timeline. */
  const timeline = (kind: 'video' | 'audio', from: number, to: number, offset: number): string => {
    const [stream, timescale, starts] = kind === 'video' ? [0, TIMESCALE, PICTURES] : [1, 48_000, SOUND];
    const entries = starts
      .slice(from, to)
      .map((start, index) => `<S t="${start}" d="${(starts[from + index + 1] ?? 0) - start}"/>`);
    const template = `initialization="init-stream${stream}.m4s" media="chunk-stream${stream}-$Number%05d$.m4s" startNumber="${from + 1}"`;
    return set(
      kind,
      `<SegmentTemplate timescale="${timescale}" presentationTimeOffset="${offset}" ${template}><SegmentTimeline>${entries.join('')}</SegmentTimeline></SegmentTemplate>`,
    );
  };
  /** Segments of the sound by a list that says nothing true of their times. */
  const list = (from: number, to: number, offset: number): string => {
    const urls = SOUND.slice(from, to).map(
      (_, index) => `<SegmentURL media="chunk-stream1-0000${from + index + 1}.m4s"/>`,
    );
    return set(
      'audio',
      `<SegmentList timescale="48000" presentationTimeOffset="${offset}" duration="48"><Initialization sourceURL="init-stream1.m4s"/>${urls.join('')}</SegmentList>`,
    );
  };
  const played = (total: string, ...periods: readonly (readonly [duration: string, sets: string])[]) => {
    const each = periods.map(([duration, sets], id) => `<Period id="${id}" duration="${duration}">${sets}</Period>`);
    const text = head.replace(/mediaPresentationDuration="[^"]*"/, `mediaPresentationDuration="${total}"`);
    return verified({ ...signed, 'manifest.mpd': `${text}${each.join('')}</MPD>\n` });
  };

  test('are valid where each goes on where the one before ends', async () => {
    const verdict = await played(
      'PT6S',
      ['PT3S', timeline('video', 0, 3, 0) + timeline('audio', 0, 3, 0)],
      ['PT3S', timeline('video', 3, 6, PICTURES[3] ?? 0) + timeline('audio', 3, 7, 144_000)],
    );
    asserted(verdict, 'valid', /Media unchanged/);
  });

  test('may not end before sound that goes on in no other one', async () => {
    const verdict = await played(
      'PT6S',
      ['PT1S', timeline('video', 0, 1, 0) + list(0, 6, 0)],
      ['PT5S', timeline('video', 1, 6, PICTURES[1] ?? 0) + list(6, 7, 287_744)],
    );
    asserted(verdict, 'invalid', /its period ends .* s before its end/);
  });

  test('may not offer sound without a segment', async () => {
    const verdict = await played(
      'PT6S',
      ['PT1S', timeline('video', 0, 1, 0) + list(0, 7, 0)],
      ['PT5S', timeline('video', 1, 6, PICTURES[1] ?? 0) + list(7, 7, 0)],
    );
    asserted(verdict, 'invalid', /it offers pictures without the sound/);
  });

  test('may not offer parts of a rendition side by side', async () => {
    const second = (sets: string): string => sets.replace('id="audio"', 'id="other"');
    const whole = [timeline('video', 0, 6, 0), timeline('audio', 0, 7, 0), second(timeline('audio', 0, 7, 0))].join('');
    const parts = [timeline('video', 0, 6, 0), timeline('audio', 0, 1, 0), second(timeline('audio', 1, 7, 0))].join('');
    const empty = [timeline('video', 0, 6, 0), timeline('audio', 0, 7, 0), second(list(7, 7, 0))].join('');
    asserted(await played('PT6S', ['PT6S', whole]), 'invalid', /"added"/);
    asserted(await played('PT6S', ['PT6S', parts]), 'invalid', /holds another part of the same media/);
    asserted(await played('PT6S', ['PT6S', empty]), 'invalid', /a representation has no segments/);
  });

  test('may not play sound by another clock than pictures', async () => {
    const verdict = await played(
      'PT6S',
      ['PT4S', timeline('video', 0, 4, 0) + timeline('audio', 0, 4, 0)],
      ['PT2S', timeline('video', 4, 6, PICTURES[4] ?? 0) + timeline('audio', 4, 7, 168_000)],
    );
    asserted(verdict, 'invalid', /its presentation offset is 0\.5 s off that of what plays beside it/);
  });

  test('may be rounded to tenths of seconds', async () => {
    const folder = join(home, 'long-segments');
    mkdirSync(folder);
    ffmpeg(
      folder,
      ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=24:d=2.5'],
      '-c:v libx264 -preset ultrafast -bf 0 -g 24 -sc_threshold 0 -pix_fmt yuv420p -f dash -seg_duration 1 -use_timeline 1 -use_template 1 init.mpd',
    );
    const { 'init.mpd': mpd = Buffer.of(), ...media } = filesAt(folder);
    const text = Buffer.from(mpd).toString();
    const of = Object.fromEntries(Object.entries(media).map(([path, bytes]) => [path, Buffer.from(bytes)]));
    const short = await signedOf({ ...of, 'v.mpd': Buffer.from(mpd) }, '*.mpd');
    const lasting = (length: string) =>
      verified({
        ...short,
        'v.mpd': text.replace(/mediaPresentationDuration="[^"]*"/, `mediaPresentationDuration="${length}"`),
      });
    asserted(await lasting('PT3S'), 'valid', /Media unchanged/);
    asserted(await lasting('PT2.4S'), 'valid', /Media unchanged/);
    asserted(await lasting('PT2S'), 'invalid', /its period ends 0\.\d+ s before its end/);
  });

  test('may not each cut a little of what they show', async () => {
    const periods = PICTURES.slice(0, 6).map((start, at) => {
      const sets =
        timeline('video', at, at + 1, start + TIMESCALE / 12) +
        timeline('audio', at, at === 5 ? 7 : at + 1, (start / TIMESCALE) * 48_000 + 4_000);
      return ['PT0.917S', sets] as const;
    });
    asserted(await played('PT5.502S', ...periods), 'invalid', /leave out 0\.\d+ s of what they show/);
  });
});

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
