import assert from 'node:assert/strict';
import { test } from 'node:test';
import { probeMedia } from '#packaging/probing/probe-media.ts';
import { MemorySource } from '../support/memory-source.ts';

/** A frame of silence in ADTS: 1024 samples at 48 kHz. */
const FRAME = Buffer.from('fff14c8001bffc211004608c1c', 'hex');
/** An ID3 tag of four bytes, in place of the time stamp that packed audio begins with (RFC 8216 §3.4). */
const TAG = Buffer.from('4944330400000000000400000000', 'hex');

test('the length of packed audio is that of all its segments, each of which begins with a tag', async () => {
  const segment = Buffer.concat([TAG, ...Array.from({ length: 75 }, () => FRAME)]);
  const source = new MemorySource(Buffer.concat([segment, segment, segment]));
  const probed = await probeMedia(source, 'sound.m3u8.ts', new AbortController().signal);
  assert.equal(probed?.container, 'adts');
  assert.equal(probed?.streams[0]?.durationSeconds?.toFixed(6), ((3 * 75 * 1024) / 48_000).toFixed(6));
});
