import { join } from 'node:path';
import { describe, test } from 'node:test';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { asserted, type Files, home, signedOf, verified } from './unsigned-playlists.ts';

// Encrypted media, as playlists say how to decrypt them: players leave out what they know no system for, and play what is left.

const MPD = 'manifest.mpd';
const SETS = /<AdaptationSet [^>]*contentType="(\w+)"[^>]*>/g;
const KEY = '00112233445566778899aabbccddeeff';
const COMMON =
  '<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc" xmlns:cenc="urn:mpeg:cenc:2013" cenc:default_KID="a"><cenc:pssh>AA==</cenc:pssh><mspr:pro xmlns:mspr="urn:microsoft:playready">AA==</mspr:pro><ms:laurl xmlns:ms="urn:microsoft" licenseUrl="https://licence.example/"/><dashif:Laurl xmlns:dashif="https://dashif.org/CPS">https://licence.example/</dashif:Laurl></ContentProtection>';
const system = (id: string): string => `<ContentProtection schemeIdUri="urn:uuid:${id}"/>`;
const WIDEVINE = system('edef8ba9-79d6-4ace-a3c8-27dcd51d21ed');
const PLAYREADY = system('9a04f079-9840-4286-ab92-e65be0885f95');

const options = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1';
const encryption = `-format_options encryption_scheme=cenc-aes-ctr:encryption_key=${KEY}:encryption_kid=${KEY}`;
const folder = makeFfmpegDash(makeFilm(home), join(home, 'dash'), `${options} ${encryption}`);
/** Takes out what leads to the encryption of samples from the start of a file: other tools do not move it. */
const withoutOffsets = (bytes: Uint8Array): Buffer =>
  Buffer.from(
    Buffer.from(bytes)
      .toString('latin1')
      .replaceAll(/saio|saiz/g, 'free'),
    'latin1',
  );
const files: Files = Object.fromEntries(
  Object.entries(filesAt(folder)).map(([path, bytes]) => [
    path,
    path.includes('init') ? withoutOffsets(bytes) : Buffer.from(bytes),
  ]),
);
const signed = await signedOf(files, '*.{mpd,m3u8}');

/** Verifies the publication with other statements about how its pictures and its sound are encrypted. */
function verifiedWith(pictures: string, sound: string, defined = '') {
  const own = `${signed[MPD]}`.replace('<Period', `${defined}<Period`);
  const text = own.replace(SETS, (set, kind) => set + (kind === 'video' ? pictures : sound));
  return verified({ ...signed, [MPD]: text });
}

describe('encrypted pictures and sound', () => {
  test('are valid as packagers state it', async () => {
    const both = COMMON + WIDEVINE + PLAYREADY;
    asserted(await verifiedWith(both, both), 'valid', /Media unchanged/);
    const inCapitals = WIDEVINE.replace('edef8ba9', 'EDEF8BA9');
    asserted(await verifiedWith(COMMON + WIDEVINE, COMMON + inCapitals), 'valid', /Media unchanged/);
  });

  test('are valid where one of them is said to be encrypted by reference', async () => {
    const defined = WIDEVINE.replace('/>', ' refId="a"/>');
    const verdict = verifiedWith(COMMON + WIDEVINE, COMMON + WIDEVINE.replace('/>', ' ref="a"/>'), defined);
    asserted(await verdict, 'valid', /Media unchanged/);
  });

  for (const [kinds, pictures, sound] of [
    ['pictures and sound', WIDEVINE, PLAYREADY],
    ['sound for fewer systems', WIDEVINE + PLAYREADY, PLAYREADY],
    ['pictures for fewer systems', WIDEVINE, WIDEVINE + PLAYREADY],
  ] as const) {
    test(`are ambiguous with ${kinds} protected in different ways`, async () => {
      const found = /protects pictures and sound in different ways, and some players leave out/;
      asserted(await verifiedWith(COMMON + pictures, COMMON + sound), 'invalid', found);
    });
  }
});

describe('a key in HLS', () => {
  const KEYS =
    '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://a",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"';
  /** Returns the playlists of media with lines above the segment of a number. */
  const withLines = (lines: string, number: number): Files => {
    const playlists = Object.entries(signed).filter(([path]) => /^media_\d/.test(path));
    return Object.fromEntries(
      playlists.map(([path, bytes]) => {
        const [head, ...segments] = `${bytes}`.split(/(?=#EXTINF)/);
        return [path, Buffer.from([head, ...segments.toSpliced(number, 0, `${lines}\n`)].join(''))];
      }),
    );
  };

  test('may stand above encrypted media', async () => {
    asserted(await verified({ ...signed, ...withLines(KEYS, 0) }), 'valid', /Media unchanged/);
  });

  test('may change at a discontinuity', async () => {
    const changed = withLines(`#EXT-X-DISCONTINUITY\n${KEYS}`, 1);
    asserted(await verified({ ...signed, ...changed }), 'valid', /Media unchanged/);
    const same = withLines('#EXT-X-DISCONTINUITY', 1);
    asserted(await verified({ ...signed, ...same }), 'invalid', /a discontinuity stands before it/);
  });
});
