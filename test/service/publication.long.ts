import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { PublicationPatterns } from '#publications/publication.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { assertSameFrames } from '../support/judges/publication-judges.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import {
  makeFfmpegByteRanges,
  makeFfmpegDash,
  makeFfmpegHls,
  makeFilm,
  makeMediabunny,
  makeShaka,
  makeShakaByteRanges,
} from '../support/publications/make-publication.ts';
import { assertSignedPublication, type Files, locationOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { publicationVariants } from './publication-variants.ts';

const folder = temporaryFolder();
const film = makeFilm(folder);
const separate: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: '*init*', frag: '*.m4s' };
const singleFiles: PublicationPatterns = { ...separate, init: '*.{mp4,m4s}', frag: '*.{mp4,m4s}' };
/** Playlists that ffmpeg can play. */
const INDEXES = /^(master|index).*\.m3u8$/;
/** Files that a folder may hold beside the publication. */
const strangers = { 'poster.jpg': 'not really a picture', 'notes/read me.txt': '', 'notes/ümlaut.json': '{}' };

let service: RunningService;
before(async () => {
  service = await startService({ folder: join(folder, 'service') });
});
after(() => service.stop());

interface Case {
  readonly name: string;
  readonly make: (folder: string) => string | Promise<string>;
  readonly patterns?: PublicationPatterns;
  readonly order?: readonly string[];
  /** Playlists that ffmpeg can play; all but MPDs where nothing is said. */
  readonly played?: RegExp;
}

const shakaText = (directory: string): string =>
  `in=${directory}/lines.vtt,stream=text,format=vtt+mp4,init_segment=text/init.mp4,segment_template=text/$Number$.m4s,playlist_name=text/index.m3u8,hls_group_id=text,hls_name=English,language=en`;
const encryption = [
  '--enable_raw_key_encryption',
  '--keys',
  'label=:key_id=00112233445566778899aabbccddeeff:key=0123456789abcdef0123456789abcdef',
  '--protection_scheme',
  'cbcs',
  '--clear_lead',
  '0',
];

const packaged: Case[] = [
  { name: 'ffmpeg HLS, two muxed variants in one folder', make: (at) => makeFfmpegHls(film, at) },
  { name: 'ffmpeg DASH and HLS', make: (at) => makeFfmpegDash(film, at) },
  {
    name: 'ffmpeg DASH with styp, sidx and prft before every moof',
    make: (at) =>
      makeFfmpegDash(
        film,
        at,
        '-seg_duration 1 -use_timeline 0 -use_template 1 -format_options write_prft=pts:movflags=+dash -hls_playlist 1',
      ),
  },
  { name: 'ffmpeg HLS in one file', make: (at) => makeFfmpegByteRanges(film, at), patterns: singleFiles },
  { name: 'shaka-packager HLS and DASH', make: (at) => makeShaka(film, at) },
  {
    name: 'shaka-packager with subtitles in MP4',
    make: (at) => {
      writeFiles(folder, { 'lines.vtt': 'WEBVTT\n\n00:00.500 --> 00:01.500\nOne\n\n00:03.000 --> 00:05.500\nTwo\n' });
      return makeShaka(film, at, [shakaText(folder)]);
    },
  },
  {
    name: 'shaka-packager with encryption',
    make: (at) => makeShaka(film, at, encryption),
    played: /(?!)/, // Without the key there is nothing to decode.
  },
  {
    name: 'shaka-packager HLS and DASH in one file each, with SegmentBase',
    make: (at) => makeShakaByteRanges(film, at),
    patterns: singleFiles,
  },
  { name: 'mediabunny HLS', make: (at) => makeMediabunny(film, at) },
  { name: 'mediabunny HLS in one file', make: (at) => makeMediabunny(film, at, true), patterns: singleFiles },
];

describe('The service signs what was made by', () => {
  for (const made of packaged) test(made.name, () => signAndCompare(made));
});

describe('The service signs a publication with', () => {
  let files: Files;
  before(() => {
    files = filesAt(makeFfmpegHls(film, join(folder, 'hls')));
  });
  for (const { name, edit, ...rest } of publicationVariants) {
    test(name, () => signAndCompare({ name, make: (at) => writeFiles(at, edit(files)), ...rest }));
  }
});

async function signAndCompare({ name, make, patterns = separate, order = [], played = INDEXES }: Case) {
  const source = await make(join(folder, 'sources', name));
  writeFiles(source, strangers);
  const target = await sign(source, patterns);
  const [files, signed] = [filesAt(source), filesAt(target)];
  const renditions = await assertSignedPublication(files, patterns, signed);
  assert.ok(renditions.every(({ fragments }) => fragments.length > 0));
  for (const [location, path] of order.entries()) assert.equal(locationOf(signed[path] as Uint8Array), location, path);
  const playlists = readdirSync(source).filter((file) => played.test(file));
  if (playlists.length > 0) assertSameFrames(target, source, playlists);
}

async function sign(source: string, { playlist, init, frag }: PublicationPatterns): Promise<string> {
  const job = await service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path: source }],
    params: { playlist_pattern: playlist, init_pattern: init, frag_pattern: frag },
  });
  const [result] = job.results;
  assert.equal(job.status, 'succeeded', result?.error);
  return result?.output_path as string;
}
