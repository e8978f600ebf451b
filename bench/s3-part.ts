import { createReadStream, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { S3 } from '@aws-sdk/client-s3';
import type { RunningService } from '../scripts/running-service.ts';
import { type S3Server, startS3Server } from '../scripts/s3-server.ts';
import { type BenchContext, startBenchService } from './bench-context.ts';
import { writtenBytesDuring } from './disk-writes.ts';
import { type Contender, measureProgram, measureRounds, median, progress, type Series } from './measuring.ts';
import { writeVideo } from './media.ts';
import { type PeakMemory, peakMemoryDuring } from './process-memory.ts';
import { writePublication } from './publication-media.ts';
import { isRcloneInstalled, timeRclone } from './rclone.ts';
import { megabytes, ratioTarget, type Target, targetsTable, timesTable } from './report.ts';

const BUCKET = 'bench';
const VIDEO_BYTES = 1.2e9;
const VIDEO_KEY = 'in/film.mp4';
/** 400 MB. */
const PUBLICATION = { renditions: 2, fragments: 2_000, fragmentBytes: 200_000 };
/** Fragments that the service works on at once, and so objects that the SDK alone copies at once. */
const OBJECTS_AT_ONCE = 8;

const MAX_MEMORY_BYTES = 350e6;
/** Limit for the job's record and the journal of its upload on the disk. */
const MAX_DISK_BYTES = 4e6;
const MAX_OF_SLOWER = 1.3;
const MAX_OF_DOWNLOAD = 1.2;
const MIN_OF_SDK_SPEED = 0.6;

const DOWNLOAD = 'AWS SDK, download alone';
const UPLOAD = 'AWS SDK, upload alone';
const COPIED_ALONE = 'AWS SDK, UploadPartCopy of the same parts alone';
const RCLONE_THROUGH = 'rclone, through its memory';
const RCLONE_COPIED = 'rclone, copied by the server';
const THROUGH = 'service, through its memory';
const COPIED = 'service, unchanged parts copied by the server';
const SDK_COPY = 'AWS SDK, GET and PUT of every object';
const RCLONE_FOLDER = 'rclone, GET and PUT of every object';
const PUBLICATION_SIGNED = 'service, publication';

const WITHOUT_RCLONE = '`rclone` is not installed and was not compared (Debian: `apt-get install rclone`).';

/** A film and a publication from a bucket to the same bucket, on loopback. */
export async function s3Part(context: BenchContext): Promise<string> {
  progress('starting the S3 server');
  const server = await startS3Server();
  process.env['AWS_ACCESS_KEY_ID'] = server.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = server.secretAccessKey;
  try {
    await putSources(context, server);
    await using copying = await startBenchService(context, 's3-copying', { readBack: false }, s3Settings(server));
    await using through = await startBenchService(context, 's3-through', { readBack: false }, s3Settings(server, true));
    const film = await measureFilm(context, server, copying, through);
    const publication = await measurePublication(context, server, copying);
    return [film, publication, ...(isRcloneInstalled() ? [] : [WITHOUT_RCLONE])].join('\n\n');
  } finally {
    await server.stop();
  }
}

/** With `apart`, inputs are reached under another name of the same host, so that nothing is copied by the server. */
function s3Settings({ endpoint, region }: S3Server, apart = false): Record<string, string> {
  const inputs = apart ? endpoint.replace('127.0.0.1', 'localhost') : endpoint;
  return {
    SERVICE__INPUT_RESOLVERS__S3__ENDPOINT_URL: inputs,
    SERVICE__INPUT_RESOLVERS__S3__REGION: region,
    SERVICE__INPUT_RESOLVERS__S3__FORCE_PATH_STYLE: 'true',
    SERVICE__OUTPUT_SINKS__S3__ENDPOINT_URL: endpoint,
    SERVICE__OUTPUT_SINKS__S3__REGION: region,
    SERVICE__OUTPUT_SINKS__S3__FORCE_PATH_STYLE: 'true',
    SERVICE__OUTPUT_SINKS__S3__BUCKETS: BUCKET,
  };
}

async function putSources({ folder }: BenchContext, { endpoint, region }: S3Server): Promise<void> {
  const client = new S3({ endpoint, region, forcePathStyle: true });
  await client.createBucket({ Bucket: BUCKET });
  const video = join(folder, 'film.mp4');
  progress('writing the film');
  await writeVideo(video, VIDEO_BYTES);
  const ContentLength = statSync(video).size;
  await client.putObject({ Bucket: BUCKET, Key: VIDEO_KEY, Body: createReadStream(video), ContentLength });
  rmSync(video);
  progress('writing the publication');
  const publication = await writePublication(join(folder, 'publication'), PUBLICATION);
  for (const entry of readdirSync(publication, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const Key = `in/publication/${relative(publication, path)}`;
    await client.putObject({ Bucket: BUCKET, Key, Body: readFileSync(path) });
  }
  rmSync(publication, { recursive: true });
  client.destroy();
}

async function measureFilm(
  context: BenchContext,
  server: S3Server,
  copying: RunningService,
  through: RunningService,
): Promise<string> {
  const contenders: Contender[] = [
    { name: DOWNLOAD, measure: () => sdk(server, 'download', VIDEO_KEY) },
    { name: UPLOAD, measure: () => sdk(server, 'upload', 'sdk/film.mp4', String(VIDEO_BYTES)) },
    { name: COPIED_ALONE, measure: () => sdk(server, 'copy-parts', VIDEO_KEY, 'sdk/copied.mp4') },
    ...rcloneOfFilm(server),
    { name: THROUGH, measure: () => timeFilm(through) },
    { name: COPIED, measure: () => timeFilm(copying) },
  ];
  for (const service of [copying, through]) await timeFilm(service);
  const series = await measureRounds(contenders, context.rounds);
  const memories = [];
  const written = [];
  for (const service of [through, copying]) {
    memories.push(await peakMemoryDuring(service.pid, () => timeFilm(service)));
    written.push(await writtenBytesDuring(service.pid, () => timeFilm(service)));
  }
  return [
    `## 1.2 GB MP4 from S3 to S3 on loopback, read-back off (${context.rounds} rounds)`,
    timesTable(contenders, series),
    '### Targets',
    targetsTable(filmTargets(series, memories, written)),
  ].join('\n\n');
}

function rcloneOfFilm(server: S3Server): Contender[] {
  if (!isRcloneInstalled()) return [];
  const measure = (serverCopies: boolean) =>
    timeRclone(server, ['copyto', `${BUCKET}/${VIDEO_KEY}`, `${BUCKET}/rclone/film.mp4`], { serverCopies });
  return [
    { name: RCLONE_THROUGH, measure: () => measure(false) },
    { name: RCLONE_COPIED, measure: () => measure(true) },
  ];
}

function filmTargets(
  series: ReadonlyMap<string, Series>,
  memories: readonly PeakMemory[],
  written: readonly number[],
): Target[] {
  const of = (name: string): Series => series.get(name) ?? [];
  const slower = median(of(UPLOAD)) > median(of(DOWNLOAD)) ? of(UPLOAD) : of(DOWNLOAD);
  const names = ['through memory', 'copied by the server'];
  return [
    ratioTarget(
      `through memory: at most ${MAX_OF_SLOWER} times the slower of download and upload`,
      [of(THROUGH), slower],
      {
        atMost: MAX_OF_SLOWER,
      },
    ),
    ratioTarget(`copied by the server: at most ${MAX_OF_DOWNLOAD} times the download`, [of(COPIED), of(DOWNLOAD)], {
      atMost: MAX_OF_DOWNLOAD,
    }),
    ...memories.map(({ pssBytes }, index) => ({
      statement: `${names[index]}: all processes under ${megabytes(MAX_MEMORY_BYTES)} (PSS)`,
      measured: megabytes(pssBytes),
      held: pssBytes < MAX_MEMORY_BYTES,
    })),
    ...written.map((bytes, index) => ({
      statement: `${names[index]}: no media on the local disk (bytes that all processes wrote, the job's record included)`,
      measured: `${(bytes / 1e6).toFixed(2)} MB`,
      held: bytes < MAX_DISK_BYTES,
    })),
  ];
}

async function measurePublication(context: BenchContext, server: S3Server, service: RunningService): Promise<string> {
  let round = 0;
  const contenders: Contender[] = [
    {
      name: SDK_COPY,
      measure: () => sdk(server, 'copy', 'in/publication/', `sdk/${round++}/`, String(OBJECTS_AT_ONCE)),
    },
    ...(isRcloneInstalled() ? [{ name: RCLONE_FOLDER, measure: () => rcloneOfFolder(server, round) }] : []),
    { name: PUBLICATION_SIGNED, measure: () => timePublication(service, `round-${round}`) },
  ];
  const series = await measureRounds(contenders, context.rounds);
  const memory = await peakMemoryDuring(service.pid, () => timePublication(service, 'memory'));
  const written = await writtenBytesDuring(service.pid, () => timePublication(service, 'disk'));
  const of = (name: string): Series => series.get(name) ?? [];
  return [
    `## A publication of 2,000 fragments, 400 MB, from S3 to S3 on loopback, read-back off (${context.rounds} rounds)`,
    timesTable(contenders, series),
    '### Targets',
    targetsTable([
      ratioTarget(
        `at least ${MIN_OF_SDK_SPEED} times as fast as the SDK alone, ${OBJECTS_AT_ONCE} objects at once each`,
        [of(SDK_COPY), of(PUBLICATION_SIGNED)],
        { atLeast: MIN_OF_SDK_SPEED },
      ),
      ...(isRcloneInstalled()
        ? [
            ratioTarget(
              `at least ${MIN_OF_SDK_SPEED} times as fast as rclone, ${OBJECTS_AT_ONCE} objects at once each`,
              [of(RCLONE_FOLDER), of(PUBLICATION_SIGNED)],
              { atLeast: MIN_OF_SDK_SPEED },
            ),
          ]
        : []),
      {
        statement: `all processes under ${megabytes(MAX_MEMORY_BYTES)} (PSS)`,
        measured: megabytes(memory.pssBytes),
        held: memory.pssBytes < MAX_MEMORY_BYTES,
      },
      {
        statement: 'no media on the local disk (bytes that all processes wrote, notes and records included)',
        measured: `${(written / 1e6).toFixed(2)} MB`,
        held: written < MAX_DISK_BYTES,
      },
    ]),
  ].join('\n\n');
}

/** As `rclone copy` does with every object that a server does not copy by itself. */
function rcloneOfFolder(server: S3Server, round: number): Promise<number> {
  const [from, to] = [`${BUCKET}/in/publication`, `${BUCKET}/rclone/${round}`];
  return timeRclone(server, ['copy', from, to], { serverCopies: false, filesAtOnce: OBJECTS_AT_ONCE });
}

function sdk({ endpoint, region }: S3Server, work: string, ...parameters: readonly string[]): Promise<number> {
  return measureProgram('./s3-sdk-program.ts', [work, endpoint, region, BUCKET, ...parameters]);
}

function timeFilm(service: RunningService): Promise<number> {
  const inputs = [{ type: 'remote_file_url', url: `s3://${BUCKET}/${VIDEO_KEY}` }];
  return timeRequest(service, '/v2/sync/c2pa/video', { inputs, output: { type: 's3', bucket: BUCKET } });
}

/** Every time to another place, as the SDK does: what stands in the way of nothing is put at once. */
function timePublication(service: RunningService, prefix: string): Promise<number> {
  return timeRequest(service, '/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'remote_folder_url', url: `s3://${BUCKET}/in/publication/` }],
    output: { type: 's3', bucket: BUCKET, prefix },
    params: { playlist_pattern: '*.m3u8', init_pattern: 'init.mp4', frag_pattern: '*.m4s' },
  });
}

async function timeRequest(service: RunningService, path: string, body: object): Promise<number> {
  const startedAt = performance.now();
  const { results } = await service.runSync(path, body);
  const milliseconds = performance.now() - startedAt;
  if (results[0]?.output_path === undefined) throw new Error(`the service failed: ${results[0]?.error}`);
  return milliseconds;
}
