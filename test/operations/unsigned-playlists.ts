import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Verification } from '#contract/verification.ts';
import { readPublication } from '#publications/read-publication.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { ffmpeg } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Playlists that nobody signed, over media that are as they were signed: their times decide what players show of it, and when.

export type Files = Record<string, Buffer>;
const { signal } = new AbortController();
export const home = temporaryFolder();
let count = 0;

export async function verified(files: Record<string, Uint8Array | string>): Promise<Verification> {
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), files);
  return (await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'))).verification;
}

export async function signedOf(files: Files, playlist: string): Promise<Files> {
  const patterns = { playlist, init: '*init*', frag: '*.m4s' };
  return await signAsOthers(files, (await readPublication(folderOf(files), patterns, signal)).renditions, {});
}

export function asserted({ state, summary, publication }: Verification, expected: string, problem: RegExp): void {
  const told = JSON.stringify({ summary, publication });
  assert.equal(state, expected, told);
  assert.match(told, problem);
}

/** Three fragments of a second, `<name>0.m4s` to `<name>2.m4s`, whose media begin at a time, under `<name>init.mp4`. */
export function section(name: string, size: string, startSeconds: number): Files {
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
export const TIMESCALE = 12288;

/** Returns a fragment that begins later (`tfdt`, ISO/IEC 14496-12 §8.8.12); other files stay. */
export function movedTo(bytes: Uint8Array, seconds: number): Buffer {
  const moved = Buffer.from(bytes);
  const at = moved.indexOf('tfdt');
  if (at !== -1) moved.writeBigUInt64BE(moved.readBigUInt64BE(at + 8) + BigInt(seconds * TIMESCALE), at + 8);
  return moved;
}

export const map = (name: string): string => `#EXT-X-MAP:URI="${name}init.mp4"`;
export const fragments = (name: string, seconds = '1.000000'): string[] =>
  [0, 1, 2].map((number) => `#EXTINF:${seconds},\n${name}${number}.m4s`);
export const DISCONTINUITY = '#EXT-X-DISCONTINUITY';

export function hls(...lines: readonly (string | readonly string[])[]): string {
  return ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:1', ...lines.flat(), '#EXT-X-ENDLIST', ''].join('\n');
}
