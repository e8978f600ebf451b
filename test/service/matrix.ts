import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Reader } from '@contentauth/c2pa-node';
import type { ApiInputRef } from '#contract/request.ts';
import { isobmff } from '#formats/formats.ts';
import type { OperationName } from '#operations/operation.ts';
import { operations } from '#operations/registry.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { assertValid, decodedMd5, signBytes } from '../support/judges/file-judges.ts';
import { decodedFrames } from '../support/judges/publication-judges.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import {
  assertFragmentsValid,
  assertSignedPublication,
  type Files,
  renditionsOf,
} from '../support/publications/signed-publication.ts';
import type { FileServer } from '../support/servers/file-server.ts';
import { serve } from '../support/servers/http-server.ts';
import { startNginx } from '../support/servers/nginx.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { s3Settings } from './s3-settings.ts';

const HLS: PublicationPatterns = { playlist: '*.m3u8', init: 'init_*.mp4', frag: '*.m4s' };
const PACKAGED: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };

const home = temporaryFolder();
/** The folder of the inputs, which a web server serves, and which lies in a bucket too. */
const media = join(home, 'media');
let s3: TestS3;
let bucket: string;
let nginx: FileServer;
let service: RunningService;

before(async () => {
  await makeMedia();
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  for (const [path, Body] of Object.entries(filesAt(media))) {
    await s3.client.putObject({ Bucket: bucket, Key: `media/${path}`, Body });
  }
  nginx = await startNginx(media);
  service = await startService({
    folder: join(home, 'service'),
    settings: { ...s3Settings(s3, bucket) },
  });
});
after(async () => {
  await service.stop();
  await nginx.stop();
  await s3.close();
});

async function makeMedia(): Promise<void> {
  mkdirSync(join(media, 'films/a film'), { recursive: true });
  const film = makeFilm(join(media, 'films/a film'));
  ffmpeg(media, ['-i', film], '-c:a pcm_s16le -vn 100%-Töne.wav');
  makeFfmpegHls(film, join(media, 'streams/Übung 1'));
  writeFiles(media, { 'signed film.mp4': await signBytes(isobmff, readFileSync(film)) });
}

/** An operation's request, and the judgement of its output. Folders end in a slash. */
interface MatrixCase {
  readonly input: string;
  readonly params?: object;
  readonly judge: (output: Files) => Promise<void>;
}

const cases: Readonly<Record<OperationName, MatrixCase>> = {
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
  verify: {
    input: 'signed film.mp4',
    async judge(output) {
      const [report] = onlyFile(output, 'signed film_verification.json');
      assert.equal(JSON.parse(Buffer.from(report).toString()).state, 'valid');
    },
  },
};

type Source = 'local' | 'HTTP' | 'HTTP without ranges' | 'S3';

const SOURCES: Readonly<Record<Source, (path: string) => ApiInputRef>> = {
  local: (path) =>
    path.endsWith('/')
      ? { type: 'local_folder_path', path: join(media, path) }
      : { type: 'local_file_path', path: join(media, path) },
  HTTP: (path) => remote(`${nginx.base}/html/${encoded(path)}`),
  'HTTP without ranges': (path) => remote(`${nginx.base}/no-ranges/${encoded(path)}`),
  S3: (path) => remote(`s3://${bucket}/media/${path}`),
};

/** Tests every operation from and to places, and what the SDK reads as a file from sources. */
export function testMatrix(places: readonly (readonly [Source, 'local' | 's3'])[], sources: readonly Source[]): void {
  for (const { name, path, summary } of operations) {
    describe(`${summary}: ${name}`, () => {
      for (const [source, target] of places) {
        const inputOf = SOURCES[source];
        test(`from ${source} to ${target}`, async () => {
          const { input, params, judge } = cases[name];
          const prefix = `${name}/from ${source}`;
          await judge(await run(path, inputOf(input), { ...outputTo(target), prefix }, params));
        });
      }
    });
  }

  describe('A manifest in a file of its own', () => {
    for (const [source, target] of places) {
      const inputOf = SOURCES[source];
      test(`goes from ${source} to ${target}, with a copy and alone`, async () => {
        const film = readFileSync(join(media, 'films/a film/film.mp4'));
        const output = { ...outputTo(target), prefix: `sidecars/from ${source}` };
        for (const params of [{ manifest: 'sidecar' }, { manifest: 'sidecar', copy_source: false }]) {
          const body = { inputs: [inputOf('films/a film/film.mp4')], output, params };
          const job = await service.runSync('/v2/sync/c2pa/video', body);
          const { output_path: path = '', sidecar_path: sidecarPath = '', error } = job.results[0] ?? {};
          assert.equal(job.status, 'succeeded', error);
          const [sidecar] = Object.values(await outputAt(sidecarPath, false));
          const copy = path === sidecarPath ? film : Object.values(await outputAt(path, false))[0];
          assert.deepEqual(Buffer.from(copy ?? []), film);
          await assertSidecarValid(film, sidecar ?? new Uint8Array());
        }
      });
    }
  });

  describe('What the SDK has to read as a file', () => {
    for (const source of sources) {
      const inputOf = SOURCES[source];
      test(`a source and a parent that carry manifests are read from ${source}`, async () => {
        // Signed twice: one manifest that both carried would be attached once.
        for (const name of ['signed.mp4', 'parent.mp4']) {
          const signed = Object.values(
            await run('/c2pa/video', inputOf('films/a film/film.mp4'), { type: 'local' }),
          )[0];
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

  describe('A sidecar next to a file', () => {
    for (const source of sources) {
      const inputOf = SOURCES[source];
      test(`is found from ${source}`, async () => {
        const bytes = Buffer.from('of any kind\n'.repeat(100));
        const hash = [...createHash('sha256').update(bytes).digest()];
        const data = { exclusions: [], name: 'all', alg: 'sha256', hash, pad: [] };
        await putMedia('Notizen #2 für alle.txt', bytes);
        await putMedia('Notizen #2 für alle.c2pa', await makeManifest({ label: 'c2pa.hash.data', data }));
        const job = await service.runSync('/v2/sync/verify', { inputs: [inputOf('Notizen #2 für alle.txt')] });
        const { state, manifest_from: from } = job.results[0]?.verification ?? {};
        assert.deepEqual([state, from], ['valid', 'sidecar'], job.results[0]?.error);
      });
    }
  });
}

/** Tests a server whose answers look like sidecars. */
export function testPageForEveryName(): void {
  test('A page that a server has for every name that it does not know is no sidecar', async (t) => {
    const sound = readFileSync(join(media, '100%-Töne.wav'));
    const server = await serve(t, ({ url }, response) => {
      const isSound = url === '/sound.wav';
      response.setHeader('Content-Type', isSound ? 'audio/wav' : 'text/html');
      response.end(isSound ? sound : '<!doctype html><title>Welcome</title>');
    });
    const job = await service.runSync('/v2/sync/verify', { inputs: [remote(`${server.base}/sound.wav`)] });
    assert.equal(job.results[0]?.verification?.state, 'none', job.results[0]?.error);
  });
}

/** Submits one input, which succeeds without warnings, and returns its output. */
async function run(path: string, input: ApiInputRef, output: object, params?: object): Promise<Files> {
  const body = { inputs: [input], output, ...(params !== undefined && { params }) };
  const job = await service.runSync(`/v2/sync${path}`, body);
  const [result] = job.results;
  assert.equal(job.status, 'succeeded', result?.error);
  assert.deepEqual(result?.warnings ?? [], []);
  return await outputAt(result?.output_path ?? '', input.type.includes('folder'));
}

async function assertSidecarValid(asset: Uint8Array, sidecar: Uint8Array): Promise<void> {
  const settings = { verify: { remote_manifest_fetch: false } };
  const file = { buffer: Buffer.from(asset), mimeType: 'video/mp4' };
  const reader = await Reader.fromManifestDataAndAsset(Buffer.from(sidecar), file, settings);
  assert.equal((reader.json() as { validation_state?: string }).validation_state, 'Valid');
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

/** Returns the frames that ffmpeg decodes of a file of an output. */
function framesOf(output: Files, path: string): string {
  return decodedFrames(join(writeFiles(join(home, `judged-${judged++}`), output), path));
}
