import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import {
  asserted,
  fragments,
  hls,
  home,
  map,
  movedTo,
  section,
  signedOf,
  TIMESCALE,
  verified,
} from './unsigned-playlists.ts';

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

  for (const [kind, offered] of [
    ['audio', /it offers pictures without the sound/],
    ['video', /it offers no pictures that all players play/],
  ] as const) {
    test(`may not have players leave out its ${kind} for want of a type`, async () => {
      const verdict = await edited((mpd) => mpd.replace(` mimeType="${kind}/mp4"`, ''));
      const line = text.split('\n').findIndex((each) => each.includes(`mimeType="${kind}/mp4"`)) + 1;
      asserted(verdict, 'invalid', offered);
      asserted(verdict, 'invalid', new RegExp(`"line":${line},"problem":"a representation has no mimeType`));
    });
  }

  const setOf = (kind: string) => new RegExp(`(<AdaptationSet[^>]*contentType="${kind}"[^>]*>)`);
  for (const [what, edit] of [
    ['a type in capitals', (mpd: string) => mpd.replace('mimeType="audio/mp4"', 'mimeType="audio/MP4"')],
    [
      'components of another kind',
      (mpd: string) => mpd.replace(setOf('audio'), '$1<ContentComponent contentType="video"/>'),
    ],
    [
      'components of its pictures',
      (mpd: string) => mpd.replace(setOf('video'), '$1<ContentComponent contentType="audio"/>'),
    ],
    [
      'a property of an unknown value',
      (mpd: string) =>
        mpd.replace(
          setOf('video'),
          '$1<EssentialProperty schemeIdUri="urn:mpeg:mpegB:cicp:ColourPrimaries" value="99"/>',
        ),
    ],
  ] as const) {
    test(`may not have players leave out a set for ${what}`, async () => {
      asserted(
        await edited(edit),
        'invalid',
        /leave it out|without the sound|no pictures that all players play|another type/,
      );
    });
  }

  test('may name a component and colours as they are', async () => {
    const primaries = '<EssentialProperty schemeIdUri="urn:mpeg:mpegB:cicp:ColourPrimaries" value="1"/>';
    const verdict = await edited((mpd) =>
      mpd.replace(setOf('video'), `$1${primaries}<ContentComponent contentType="video"/>`),
    );
    assert.equal(verdict.state, 'valid', verdict.summary);
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

  test('may begin with the pictures, where sound begins before them', async () => {
    const pictures = Object.entries(files).filter(([path]) => path.startsWith('chunk-stream0'));
    const moved = Object.fromEntries(pictures.map(([path, bytes]) => [path, movedTo(bytes, 0.5)]));
    const late = (offset: number): string => {
      const video = timeline('video', 0, 6, Math.round(offset * TIMESCALE)).replace(
        /<S t="(\d+)"/g,
        (_, t) => `<S t="${Number(t) + TIMESCALE / 2}"`,
      );
      return `${head.replace('PT6.0S', 'PT6S')}<Period id="0" duration="PT6S">${video}${timeline('audio', 0, 7, offset * 48_000)}</Period></MPD>\n`;
    };
    const media = await signedOf({ ...files, ...moved, 'manifest.mpd': Buffer.from(late(0.5)) }, '*.mpd');
    asserted(await verified(media), 'valid', /Media unchanged/);
    asserted(
      await verified({ ...media, 'manifest.mpd': late(0.8) }),
      'invalid',
      /its period begins 0\.3 s behind its start/,
    );
  });

  test('may leave out sound behind the last pictures, and no other', async () => {
    const sets = (last: number): string => timeline('video', 0, 6, 0) + timeline('audio', 0, last, 0);
    asserted(await played('PT6S', ['PT6S', sets(6)]), 'valid', /Media unchanged/);
    asserted(await played('PT6S', ['PT6S', sets(5)]), 'invalid', /"missing"/);
  });

  test('may leave it out beside pictures only, and not where others play these', async () => {
    const alone = (set: string): string =>
      `${head.replace('PT6.0S', 'PT6S')}<Period id="0" duration="PT6S">${set}</Period></MPD>\n`;
    const sound = alone(timeline('audio', 0, 6, 0));
    const verdict = await verified({
      ...signed,
      'manifest.mpd': alone(timeline('video', 0, 6, 0)),
      'sound.mpd': sound,
    });
    asserted(verdict, 'invalid', /"kind":"missing","part":"fragment"/);
  });

  test('may not have segments on average begin behind its end', async () => {
    const listed = (seconds: number): string => {
      const urls = [1, 2, 3, 4, 5, 6].map((number) => `<SegmentURL media="chunk-stream0-0000${number}.m4s"/>`);
      const list = `<SegmentList timescale="1000" duration="${seconds * 1000}"><Initialization sourceURL="init-stream0.m4s"/>${urls.join('')}</SegmentList>`;
      return set('video', list) + timeline('audio', 0, 7, 0);
    };
    asserted(await played('PT6S', ['PT6S', listed(1)]), 'valid', /Media unchanged/);
    asserted(await played('PT6S', ['PT6S', listed(1.2)]), 'invalid', /begins behind the end of its period/);
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

test('times of day may be those of media, in ticks that all players can hold', async () => {
  const seconds = 1_800_000_000;
  const filesBy = (media: Readonly<Record<string, Buffer>>, scale: bigint): Record<string, Buffer> => {
    const start = BigInt(seconds) * scale;
    const template = `timescale="${scale}" presentationTimeOffset="${start}" initialization="epochinit.mp4" media="t$Time$.m4s"`;
    const mpd = `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S" minBufferTime="PT1S"><Period duration="PT3S"><AdaptationSet mimeType="video/mp4"><Representation id="0" bandwidth="1"><SegmentTemplate ${template}><SegmentTimeline><S t="${start}" d="${scale}" r="2"/></SegmentTimeline></SegmentTemplate></Representation></AdaptationSet></Period></MPD>\n`;
    const named = Object.entries(media).map(([path, bytes]): [string, Buffer] => {
      const [, number] = /^epoch(\d)\.m4s$/.exec(path) ?? [];
      return [number === undefined ? path : `t${start + BigInt(number) * scale}.m4s`, bytes];
    });
    return { ...Object.fromEntries(named), 'v.mpd': Buffer.from(mpd) };
  };
  const media = section('epoch', '160x90', seconds);
  const signed = await signedOf({ ...media, 'v.m3u8': Buffer.from(hls(map('epoch'), fragments('epoch'))) }, '*.m3u8');
  const { 'v.m3u8': _, ...parts } = signed;
  asserted(await verified(filesBy(parts, 10_000_000n)), 'valid', /Media unchanged/);
  asserted(await verified(filesBy(parts, 9_999_998_976n)), 'invalid', /times that some players cannot hold/);
});
