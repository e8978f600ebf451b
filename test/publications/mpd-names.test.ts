import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { FOLLOWED, INSIDE_OPAQUE, isOfMpeg } from '#publications/playlists/mpd-elements.ts';

/** Elements that Shaka Player looks up in others which hold no media, or which are found themselves. */
const INSIDE_OTHERS = ['CryptoPeriod', 'P', 'SegmentEncryption', 'laurl', 'pro', 'pssh'];
const LOOK_UP = /\.(?:findChild(?:ren)?(?:NS)?|inheritChild)\([^;]*?'(\w+)'\)/g;

describe('the tables of names in an MPD', () => {
  it('have all elements that Shaka Player looks up, whatever their namespace', () => {
    const sources = globSync('node_modules/shaka-player/lib/dash/*.js').map((path) => readFileSync(path, 'utf8'));
    const names = new Set(sources.flatMap((text) => [...text.matchAll(LOOK_UP)].map(([, name = '']) => name)));
    assert.ok(names.has('SegmentTimeline'), 'names are found');
    const unknown = [...names].filter((name) => !isOfMpeg(name) && !FOLLOWED.has(name) && !INSIDE_OPAQUE.has(name));
    assert.deepEqual(unknown.sort(), INSIDE_OTHERS);
  });
});
