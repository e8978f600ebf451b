import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { signFragmented } from '#operations/registry.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { runInput } from '../support/run-input.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

test('text is signed with one segment more than its period has', async () => {
  const home = temporaryFolder();
  const made = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')));
  const template = '<SegmentTemplate media="text$Number$.vtt" timescale="1" duration="4" startNumber="1"/>';
  const set = `<AdaptationSet contentType="text" mimeType="text/vtt">${template}<Representation id="s" bandwidth="1"/></AdaptationSet>`;
  const mpd = Buffer.from(made['manifest.mpd'] ?? '').toString();
  const text = (number: number): string => `WEBVTT\n\n00:00.000 --> 00:01.000\n${number}\n`;
  const path = writeFiles(join(home, 'show'), {
    ...made,
    'manifest.mpd': mpd.replace('</Period>', `${set}</Period>`),
    ...Object.fromEntries([1, 2, 3].map((number) => [`text${number}.vtt`, text(number)])),
  });
  const params = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init*', frag_pattern: 'chunk*' };
  const input = { type: 'local_folder_path', path } as const;
  const output = filesAt((await runInput(signFragmented, { input, params }, temporaryFolder())).outputPath);
  const stateOf = async (changed: Record<string, string>) => {
    const folder = writeFiles(join(temporaryFolder(), 'show'), { ...output, ...changed });
    const { verification } = await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'));
    return [
      verification.state,
      verification.publication?.presentation,
      JSON.stringify(verification.publication?.first),
    ];
  };
  const [state, presentation, told] = await stateOf({});
  assert.deepEqual([state, presentation], ['valid', 'as_signed'], told);
  assert.equal((await stateOf({ 'text3.vtt': text(4) }))[1], 'changed');
});
