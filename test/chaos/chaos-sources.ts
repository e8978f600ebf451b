import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import type { ApiInputRef } from '#contract/request.ts';
import type { OperationName } from '#operations/operation.ts';
import { writeVideo } from '../../bench/media.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { packetHashes } from '../support/judges/packets.ts';
import { makeFilm as makePackagedFilm } from '../support/media/make-film.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import {
  assertFragmentsValid,
  assertSignedPublication,
  type Files,
  renditionsOf,
} from '../support/publications/signed-publication.ts';

/** Enough for a Merkle tree, and to be killed in the middle of. */
const LARGE_VIDEO_BYTES = 40_000_000;

/** An input that jobs may have, and what its output must be. */
export interface ChaosSource {
  readonly input: ApiInputRef;
  /** The last part of the path of its output: a file, or a folder. */
  readonly leaf: string;
  readonly isFolder: boolean;
  /** Rejects unless the output is whole and valid. A file comes under its leaf, a folder by the paths in it. */
  check(output: Files): Promise<void>;
}

/** The inputs and requests of one operation. */
export interface ChaosOperation {
  readonly name: OperationName;
  readonly route: string;
  readonly params?: object;
  readonly sources: readonly ChaosSource[];
}

/**
 * Makes the media of a run in a folder, which `mediaBase` serves over HTTP, and says what can be asked of the service
 * for it.
 */
export async function makeChaosOperations(folder: string, mediaBase: string): Promise<ChaosOperation[]> {
  return [
    { name: 'c2pa-video', route: 'c2pa/video', sources: await makeVideos(folder, mediaBase) },
    { name: 'c2pa-audio', route: 'c2pa/audio', sources: makeSounds(folder) },
    makePublications(folder),
    ...makePackaging(folder),
  ];
}

async function makeVideos(folder: string, mediaBase: string): Promise<ChaosSource[]> {
  const large = join(folder, 'large.mp4');
  await writeVideo(large, LARGE_VIDEO_BYTES);
  const local = [makeFilm(folder), large].map((path) => fileSource(path, 'video/mp4'));
  const remote = ['ranged', 'whole'].map((way): ChaosSource => {
    const name = `${way}.mp4`;
    copyFileSync(large, join(folder, name));
    const input = { type: 'remote_file_url', url: `${mediaBase}/${way}/${name}` } as const;
    return { ...fileSource(name, 'video/mp4'), input };
  });
  return [...local, ...remote];
}

function makeSounds(folder: string): ChaosSource[] {
  const tone = ['-f', 'lavfi', '-i', 'sine=duration=2'];
  const mediaTypes = { 'tone.wav': 'audio/wav', 'tone.mp3': 'audio/mpeg', 'tone.flac': 'audio/flac' };
  return Object.entries(mediaTypes).map(([name, mediaType]) => {
    ffmpeg(folder, tone, name);
    return fileSource(join(folder, name), mediaType);
  });
}

/** A file as it is delivered with `derived` names: read back by both official readers. */
function fileSource(path: string, mediaType: string): ChaosSource {
  const extension = extname(path);
  const leaf = `${basename(path, extension)}_c2pa${extension}`;
  return {
    input: { type: 'local_file_path', path },
    leaf,
    isFolder: false,
    check: async (output) => {
      assert.deepEqual(Object.keys(output), [leaf]);
      await assertValid(output[leaf] as Uint8Array, mediaType);
    },
  };
}

function makePublications(folder: string): ChaosOperation {
  const patterns = { playlist: '*.m3u8', init: 'init*', frag: '*.m4s' };
  const film = join(folder, 'film.mp4');
  const sources = ['morning', 'evening'].map((name): ChaosSource => {
    const path = makeFfmpegHls(film, join(folder, name));
    writeFileSync(join(path, 'name.txt'), name);
    const source = filesAt(path);
    return {
      ...folderSource(path),
      check: async (output) => void (await assertSignedPublication(source, patterns, output)),
    };
  });
  const params = {
    playlist_pattern: patterns.playlist,
    init_pattern: patterns.init,
    frag_pattern: patterns.frag,
  };
  return { name: 'c2pa-fragmented', route: 'c2pa/fragmented', params, sources };
}

/** Both ways of packaging a folder, which may replace each other's outputs. */
function makePackaging(folder: string): ChaosOperation[] {
  const path = join(folder, 'film');
  mkdirSync(path);
  const film = makePackagedFilm(path);
  const tracks = { 'video/h264_180p': 'v:0', 'audio/en_aac': 'a:0', 'audio/de_aac': 'a:1' };
  const expected = Object.entries(tracks).map(([name, stream]) => [name, packetHashes(film, stream)] as const);
  const checkPackets = (output: Files): void => {
    const playlists = textOf(output, 'master.m3u8') + textOf(output, 'manifest.mpd');
    for (const [name, packets] of expected) {
      assert.ok(playlists.includes(`${name}/index.m3u8`) && playlists.includes(`"${name}/init.mp4"`), name);
      assert.deepEqual(packetHashes(joinListed(output, name)), packets, name);
    }
  };
  const source = folderSource(path);
  const plain = { ...source, check: async (output: Files) => checkPackets(output) };
  const signed = {
    ...source,
    check: async (output: Files) => {
      checkPackets(output);
      await assertSignedPackage(output, expected.length);
    },
  };
  return [
    { name: 'package', route: 'package', sources: [plain] },
    { name: 'c2pa-package', route: 'c2pa/package', params: {}, sources: [signed] },
  ];
}

/** The init segment of a rendition and everything that its playlist lists. */
function joinListed(output: Files, rendition: string): Buffer {
  const listed = [...textOf(output, `${rendition}/index.m3u8`).matchAll(/^[^#\s].*$/gm)].map(([line]) => line);
  assert.ok(listed.length > 0, rendition);
  const parts = ['init.mp4', ...listed].map((part) => output[`${rendition}/${part}`]);
  assert.ok(!parts.includes(undefined), `everything that ${rendition} lists is there`);
  return Buffer.concat(parts as Uint8Array[]);
}

async function assertSignedPackage(output: Files, renditionCount: number): Promise<void> {
  const renditions = await renditionsOf(output, { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' });
  assert.equal(renditions.length, renditionCount);
  await assertFragmentsValid(output, renditions);
}

function folderSource(path: string): Omit<ChaosSource, 'check'> {
  return { input: { type: 'local_folder_path', path }, leaf: basename(path), isFolder: true };
}

function textOf(files: Files, path: string): string {
  const bytes = files[path];
  assert.ok(bytes !== undefined, `${path} is there`);
  return Buffer.from(bytes).toString('utf8');
}

/** An output of this host, as `check` wants it. */
export function localOutput(path: string, { isFolder, leaf }: ChaosSource): Files {
  return isFolder ? filesAt(path) : { [leaf]: readFileSync(path) };
}
