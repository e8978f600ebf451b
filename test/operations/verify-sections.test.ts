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

  test('may not stand where a key begins, and the media are not encrypted', async () => {
    const key = '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a"';
    const playlist = honest.replace(`${fragments('early')[1]}`, `${DISCONTINUITY}\n${key}\n$&`);
    asserted(await verified({ ...signed, 'v.m3u8': playlist }), 'invalid', /it is said to be encrypted/);
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
