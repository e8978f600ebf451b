import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ApiInputRef } from '#contract/request.ts';
import type { OperationName } from '#operations/operation.ts';
import { operations } from '#operations/registry.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { assertValid, decodedMd5 } from '../formats/judges.ts';
import type { FileServer } from '../inputs/file-server.ts';
import { startNginx } from '../inputs/nginx.ts';
import { readManifest } from '../provenance/read-manifest.ts';
import { decodedFrames } from '../publications/judges.ts';
import { filesAt, writeFiles } from '../publications/make-folder.ts';
import { ffmpeg, makeFfmpegHls, makeFilm, temporaryFolder } from '../publications/make-media.ts';
import { openTestS3, type TestS3 } from '../s3/open-test-s3.ts';
import { s3Settings } from './s3-settings.ts';
import { assertFragmentsValid, assertSignedPublication, type Files, renditionsOf } from './signed-publication.ts';

const HLS: PublicationPatterns = { playlist: '*.m3u8', init: 'init_*.mp4', frag: '*.m4s' };
const PACKAGED: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };

const home = temporaryFolder();
/** What inputs are read from: a folder of this host, which a web server serves, and which lies in a bucket too. */
const media = join(home, 'media');
let s3: TestS3;
let bucket: string;
let nginx: FileServer;
let service: RunningService;

before(async () => {
  makeMedia();
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  for (const [path, Body] of Object.entries(filesAt(media))) {
    await s3.client.putObject({ Bucket: bucket, Key: `media/${path}`, Body });
  }
  nginx = await startNginx(media);
  service = await startService({
    folder: join(home, 'service'),
    settings: { ...s3Settings(s3, bucket), LOG_LEVEL: 'warn' },
  });
});
after(async () => {
  await service.stop();
  await nginx.stop();
  await s3.close();
});

function makeMedia(): void {
  mkdirSync(join(media, 'films/a film'), { recursive: true });
  const film = makeFilm(join(media, 'films/a film'));
  ffmpeg(media, ['-i', film], '-c:a pcm_s16le -vn 100%-Töne.wav');
  makeFfmpegHls(film, join(media, 'streams/Übung 1'));
}

/** What an operation is tried with, and how its output is judged. Folders end in a slash. */
interface Trial {
  readonly input: string;
  readonly params?: object;
  readonly judge: (output: Files) => Promise<void>;
}

const trials: Readonly<Record<OperationName, Trial>> = {
  'c2pa-video': {
    input: 'films/a film/film.mp4',
    async judge(output) {
      const [film] = onlyFile(output, 'film_c2pa.mp4');
      await assertValid(film, 'video/mp4');
      assert.equal(framesOf(output, 'film_c2pa.mp4'), decodedFrames(join(media, 'films/a film/film.mp4')));
    },
  },
  'c2pa-audio': {
    input: '100%-Töne.wav',
    async judge(output) {
      const [sound] = onlyFile(output, '100%-Töne_c2pa.wav');
      await assertValid(sound, 'audio/wav');
      const source = readFileSync(join(media, '100%-Töne.wav'));
      assert.equal(decodedMd5(home, sound, 'wav'), decodedMd5(home, source, 'wav'));
    },
  },
  'c2pa-fragmented': {
    input: 'streams/Übung 1/',
    params: { playlist_pattern: HLS.playlist, init_pattern: HLS.init, frag_pattern: HLS.frag },
    async judge(output) {
      await assertSignedPublication(filesAt(join(media, 'streams/Übung 1')), HLS, output);
    },
  },
  'c2pa-package': {
    input: 'films/a film/',
    params: {},
    async judge(output) {
      await assertFragmentsValid(output, await renditionsOf(output, PACKAGED));
      assert.notEqual(framesOf(output, 'master.m3u8'), '');
    },
  },
  package: {
    input: 'films/a film/',
    async judge(output) {
      assert.ok('manifest.mpd' in output);
      assert.notEqual(framesOf(output, 'master.m3u8'), '');
    },
  },
};

const SOURCES: Readonly<Record<string, (path: string) => ApiInputRef>> = {
  local: (path) =>
    path.endsWith('/')
      ? { type: 'local_folder_path', path: join(media, path) }
      : { type: 'local_file_path', path: join(media, path) },
  HTTP: (path) => remote(`${nginx.base}/html/${encoded(path)}`),
  'HTTP without ranges': (path) => remote(`${nginx.base}/no-ranges/${encoded(path)}`),
  S3: (path) => remote(`s3://${bucket}/media/${path}`),
};

for (const { name, path, summary } of operations) {
  describe(`${summary}: ${name}`, () => {
    for (const [source, inputOf] of Object.entries(SOURCES)) {
      for (const target of ['local', 's3'] as const) {
        test(`from ${source} to ${target}`, async () => {
          const { input, params, judge } = trials[name];
          const prefix = `${name}/from ${source}`;
          await judge(await run(path, inputOf(input), { ...outputTo(target), prefix }, params));
        });
      }
    }
  });
}

describe('What the SDK has to read as a file', () => {
  for (const [source, inputOf] of Object.entries(SOURCES)) {
    test(`a source and a parent that carry manifests are read from ${source}`, async () => {
      // Signed twice: one manifest that both carried would be attached once.
      for (const name of ['signed.mp4', 'parent.mp4']) {
        const signed = Object.values(await run('/c2pa/video', inputOf('films/a film/film.mp4'), { type: 'local' }))[0];
        await putMedia(name, signed as Uint8Array);
      }
      const input = inputOf('signed.mp4');
      const params = { parent: { type: 'file', source: inputOf('parent.mp4') } };
      const output = await run('/c2pa/video', input, { ...outputTo('s3'), prefix: `chains/from ${source}` }, params);
      const { ingredients, manifestCount } = await readManifest(onlyFile(output, 'signed_c2pa.mp4')[0], 'video/mp4');
      const roles = ingredients.map(({ relationship }) => relationship);
      assert.deepEqual(roles.sort(), ['componentOf', 'parentOf']);
      assert.ok(ingredients.every(({ active_manifest: manifest }) => manifest !== undefined));
      assert.equal(manifestCount, 3);
      assert.deepEqual(filesAt(join(home, 'service/data/scratch')), {});
    });
  }
});

/** Submits one input, which succeeds without warnings, and returns its output. */
async function run(path: string, input: ApiInputRef, output: object, params?: object): Promise<Files> {
  const body = { inputs: [input], output, ...(params !== undefined && { params }) };
  const job = await service.runSync(`/v2/sync${path}`, body);
  const [result] = job.results;
  assert.equal(job.status, 'succeeded', result?.error);
  assert.deepEqual(result?.warnings ?? [], []);
  return await outputAt(result?.output_path ?? '', input.type.includes('folder'));
}

function outputTo(target: 'local' | 's3'): object {
  return target === 's3' ? { type: 's3', bucket } : { type: 'local' };
}

async function putMedia(path: string, bytes: Uint8Array): Promise<void> {
  writeFiles(media, { [path]: bytes });
  await s3.client.putObject({ Bucket: bucket, Key: `media/${path}`, Body: bytes });
}

function encoded(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

function remote(url: string): ApiInputRef {
  return { type: url.endsWith('/') ? 'remote_folder_url' : 'remote_file_url', url };
}

/** The files of an output by their paths in it; a file alone by its name. */
async function outputAt(place: string, isFolder: boolean): Promise<Files> {
  const prefix = `s3://${bucket}/`;
  if (place.startsWith(prefix)) return await objectsUnder(place.slice(prefix.length), isFolder);
  return isFolder ? filesAt(place) : { [basename(place)]: readFileSync(place) };
}

async function objectsUnder(key: string, isFolder: boolean): Promise<Files> {
  const prefix = isFolder ? `${key}/` : key;
  const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: prefix });
  const files: Record<string, Uint8Array> = {};
  for (const { Key = '' } of Contents) {
    const { Body } = await s3.client.getObject({ Bucket: bucket, Key });
    files[isFolder ? relative(prefix, Key) : basename(Key)] = (await Body?.transformToByteArray()) ?? new Uint8Array();
  }
  return files;
}

/** The one file that an output consists of. */
function onlyFile(output: Files, name: string): [Uint8Array] {
  assert.deepEqual(Object.keys(output), [name]);
  return Object.values(output) as [Uint8Array];
}

let judged = 0;

/** What ffmpeg decodes of a file of an output. */
function framesOf(output: Files, path: string): string {
  return decodedFrames(join(writeFiles(join(home, `judged-${judged++}`), output), path));
}
