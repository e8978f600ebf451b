import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { box, fullBox, u16, u32 } from '../support/media/movie-bytes.ts';
import { asserted, fragments, hls, map, section, signedOf, TIMESCALE, verified } from './unsigned-playlists.ts';

// Signed parts in one file, in which an index says where they are (SegmentBase): some players read the file as a whole.

const media = section('a', '160x90', 0);
const signed = await signedOf({ ...media, 'v.m3u8': Buffer.from(hls(map('a'), fragments('a'))) }, '*.m3u8');
const part = (name: string): Buffer => signed[name] as Buffer;
const init = part('ainit.mp4');
const parts = [0, 1, 2].map((number) => part(`a${number}.m4s`));
const foreign = media['a1.m4s'] as Buffer;
const none: Buffer = Buffer.alloc(0);

/** An index of the parts, which begin at a distance behind it. */
const index = (distance: number): Buffer => {
  const references = parts.map((bytes) => u32(bytes.length, TIMESCALE, 0x90000000));
  return fullBox('sidx', 0, u32(1, TIMESCALE, 0, distance), u16(0, parts.length), ...references);
};

function verify({ before = none, behind = none, first = none, around = '', beside = {} }): Promise<Verification> {
  const indexed = index(before.length);
  const start = first.length + init.length;
  const file = Buffer.concat([first, init, indexed, before, ...parts, behind]);
  const ranges = `indexRange="${start}-${start + indexed.length - 1}"><Initialization range="${first.length}-${start - 1}"/>`;
  const mpd = `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S"><Period>${around && `<BaseURL>${around}</BaseURL>`}<AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="1"><BaseURL>v.mp4</BaseURL><SegmentBase timescale="${TIMESCALE}" ${ranges}</SegmentBase></Representation></AdaptationSet></Period></MPD>`;
  return verified({ [`${around}v.mp4`]: file, 'v.mpd': mpd, ...beside });
}

describe('a file with an index', () => {
  const padding = box('free', Buffer.alloc(16));
  const random = box('mfra', Buffer.alloc(16));

  test('holds its parts alone, and boxes without media', async () => {
    asserted(await verify({}), 'valid', /Media unchanged/);
    asserted(await verify({ before: padding, behind: random }), 'valid', /Media unchanged/);
  });

  test('is ambiguous where another file has its name, and its address is inside of a base address', async () => {
    asserted(await verify({ around: 'p/' }), 'valid', /Media unchanged/);
    asserted(await verify({ around: 'p/', beside: { 'v.mp4': foreign } }), 'invalid', /and ..v.mp4.. for others/);
  });

  for (const [name, beside] of [
    ['a fragment behind those of the index', { behind: foreign }],
    ['a fragment behind them and free space', { behind: Buffer.concat([padding, foreign]) }],
    ['a fragment before them', { before: foreign }],
    ['another movie before its own', { first: media['ainit.mp4'] as Buffer }],
    ['bytes that are no box', { behind: Buffer.alloc(20, 1) }],
  ] as const) {
    test(`is ambiguous with ${name}`, async () => {
      asserted(await verify(beside), 'invalid', /beside what its index names/);
    });
  }
});
