import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathsInPlaylists } from '#publications/existing-publication.ts';
import { findPublication, NO_PATTERNS } from '#publications/find-publication.ts';
import { readMatchedPublication } from '#publications/read-publication.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { empty } from './make-playlists.ts';

const never = new AbortController().signal;

test('a publication that is signed as it is takes the fragments along that some players count beside its segments', async () => {
  const set = (type: string, init: string, media: string): string =>
    `<AdaptationSet mimeType="${type}"><SegmentTemplate timescale="1" duration="2" initialization="${init}" media="${media}"/><Representation id="${type}" bandwidth="1"/></AdaptationSet>`;
  const sets = [
    set('video/mp4', 'head.mp4', 'pictures-$Number$.m4s'),
    set('audio/mp4', 'start.mp4', 'sound-$Number$.m4s'),
  ];
  const folder = folderOf({
    'm.mpd': `<MPD type="static" mediaPresentationDuration="PT4S"><Period>${sets.join('')}</Period></MPD>`,
    ...empty('head.mp4', 'pictures-1.m4s', 'pictures-2.m4s'),
    ...empty('start.mp4', 'sound-1.m4s', 'sound-2.m4s', 'sound-3.m4s', 'sound-9.m4s'),
  });
  const found = await findPublication(folder, NO_PATTERNS, never);
  const paths = pathsInPlaylists(found?.playlists ?? []);
  const { renditions, warnings } = await readMatchedPublication(folder, paths, never);
  // Names do not tell whose they are: the template does.
  assert.deepEqual(
    renditions.map(({ init, fragments }) => `${init.path}: ${fragments.map(({ path }) => path).join(' ')}`),
    ['head.mp4: pictures-1.m4s pictures-2.m4s', 'start.mp4: sound-1.m4s sound-2.m4s sound-3.m4s'],
  );
  assert.deepEqual(
    warnings.map(({ reason, details }) => [reason, details]),
    [['FRAGMENTS_NOT_IN_PLAYLISTS', { names: ['sound-3.m4s'], count: 1 }]],
  );
});
