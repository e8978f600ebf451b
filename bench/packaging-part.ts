import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findPackager } from '#packaging/programs/shaka-packager.ts';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService } from './bench-context.ts';
import { type Contender, measureRounds, median, progress, type Series } from './measuring.ts';
import { type PeakMemory, peakMemoryDuring } from './process-memory.ts';
import { megabytes, ratioTarget, seconds, type Target, targetsTable, timesTable } from './report.ts';

const run = promisify(execFile);

const FILM_BYTES = 1_000_000_000;
const MEMORY_LIMIT_BYTES = 400e6;
const OVERHEAD_LIMIT_MS = 500;
const SEGMENT_SECONDS = 4;

const OURS = 'service: `/v2/package`, synced';
const SIGNED = 'service: `/v2/c2pa/package`, synced, read-back off';
const SHAKA = 'shaka-packager alone, 1 MiB cache';
const SHAKA_SYNCED = 'shaka-packager alone, 1 MiB cache, and `sync`';
const FFMPEG = '`ffmpeg -c copy -f hls` (fMP4)';
const FFMPEG_SYNCED = '`ffmpeg -c copy -f hls` (fMP4), and `sync`';
const OURS_SEVEN = 'service: 7 streams';
const SHAKA_SEVEN = 'shaka-packager alone: 7 streams';

/** A folder of media through the whole API, beside the packager alone and ffmpeg. */
export async function packagingPart(context: BenchContext): Promise<string> {
  const { folder, rounds } = context;
  progress('encoding the films');
  const film = await makeFilmFolder(join(folder, 'film'));
  const seven = await makeSevenStreams(join(folder, 'seven'));
  await using service = await startBenchService(context, 'packaging', { readBack: false });
  await timePackaging(service, seven);

  const alone = (source: string, sync: boolean) => () => timeShaka(context, source, sync);
  const contenders: Contender[] = [
    { name: OURS, measure: () => timePackaging(service, film) },
    { name: SIGNED, measure: () => timePackaging(service, film, 'c2pa/package') },
    { name: SHAKA, measure: alone(film, false) },
    { name: SHAKA_SYNCED, measure: alone(film, true) },
    { name: FFMPEG, measure: () => timeFfmpeg(context, film, false) },
    { name: FFMPEG_SYNCED, measure: () => timeFfmpeg(context, film, true) },
    { name: OURS_SEVEN, measure: () => timePackaging(service, seven) },
    { name: SHAKA_SEVEN, measure: alone(seven, false) },
  ];
  const series = await measureRounds(contenders, rounds);
  progress('memory');
  const plain = await peakMemoryDuring(service.pid, () => timePackaging(service, film));
  const signed = await peakMemoryDuring(service.pid, () => timePackaging(service, film, 'c2pa/package'));
  const size = filesIn(film).reduce((sum, path) => sum + statSync(path).size, 0);
  for (const source of [film, seven]) rmSync(source, { recursive: true });
  return [
    `## A folder with a film of ${(size / 1e9).toFixed(2)} GB, H.264 and AAC, to HLS and DASH (${rounds} rounds)`,
    timesTable(contenders, series),
    `Peak memory of the service and all its children: ${megabytes(plain.pssBytes)} PSS, ${megabytes(plain.rssBytes)} RSS; signing what was packaged, ${megabytes(signed.pssBytes)} PSS, ${megabytes(signed.rssBytes)} RSS.`,
    '### Targets',
    targetsTable([
      ...timeTargets(series),
      memoryTarget('packaging', plain),
      memoryTarget('packaging and signing', signed),
    ]),
  ].join('\n\n');
}

function timeTargets(series: ReadonlyMap<string, Series>): Target[] {
  const of = (name: string): Series => series.get(name) ?? [];
  const overheadMs = median(of(OURS_SEVEN)) - median(of(SHAKA_SEVEN));
  return [
    ratioTarget('at most 1.25 times the packager alone, both synced', [of(OURS), of(SHAKA_SYNCED)], { atMost: 1.25 }),
    ratioTarget('at most 1.25 times the packager alone, which syncs nothing', [of(OURS), of(SHAKA)], { atMost: 1.25 }),
    ratioTarget('signed: at most 2.2 times the packager alone, both synced', [of(SIGNED), of(SHAKA_SYNCED)], {
      atMost: 2.2,
    }),
    ratioTarget('signed: at most 2.2 times the packager alone, which syncs nothing', [of(SIGNED), of(SHAKA)], {
      atMost: 2.2,
    }),
    ratioTarget('faster than ffmpeg, both synced', [of(OURS), of(FFMPEG_SYNCED)], { atMost: 1 }),
    ratioTarget('faster than ffmpeg, which syncs nothing', [of(OURS), of(FFMPEG)], { atMost: 1 }),
    {
      statement: '7 streams: under 0.5 s beside the packager alone',
      measured: seconds(overheadMs),
      held: overheadMs < OVERHEAD_LIMIT_MS,
    },
  ];
}

function memoryTarget(what: string, { pssBytes }: PeakMemory): Target {
  return { statement: `${what}: under 400 MB`, measured: megabytes(pssBytes), held: pssBytes < MEMORY_LIMIT_BYTES };
}

/** Packages a folder in one request and returns the milliseconds from the request to the answer. Removes the output. */
async function timePackaging(
  service: RunningService,
  folder: string,
  operation: 'package' | 'c2pa/package' = 'package',
): Promise<number> {
  const startedAt = performance.now();
  const inputs = [{ type: 'local_folder_path', path: folder }];
  const job = await service.runSync(`/v2/sync/${operation}`, { inputs, params: {} });
  const milliseconds = performance.now() - startedAt;
  const [result] = job.results;
  if (result?.output_path === undefined) throw new Error(`the service failed: ${result?.error}`);
  rmSync(result.output_path, { recursive: true });
  return milliseconds;
}

async function timeShaka({ folder }: BenchContext, source: string, sync: boolean): Promise<number> {
  const target = join(folder, 'alone');
  const streams = filesIn(source).flatMap((path, file) => {
    const kinds = path.endsWith('.vtt') ? ['text'] : path.endsWith('.m4a') ? ['audio'] : ['video'];
    if (path.endsWith('film.mp4')) kinds.push('audio');
    return kinds.map((kind) => {
      const base = join(target, `${kind}-${file}`);
      if (kind === 'text') return `in=${path},stream=text,segment_template=${base}/$Number%05d$.vtt`;
      return `in=${path},stream=${kind},init_segment=${base}/init.mp4,segment_template=${base}/$Number%05d$.m4s`;
    });
  });
  const options = [
    ...['--quiet', '--io_cache_size=1048576', '--generate_sidx_in_media_segments=false', '--generate_static_live_mpd'],
    ...[`--segment_duration=${SEGMENT_SECONDS}`, `--hls_master_playlist_output=${join(target, 'master.m3u8')}`],
  ];
  return await timeProgram(findPackager(), [...options, ...streams], target, sync);
}

async function timeFfmpeg({ folder }: BenchContext, source: string, sync: boolean): Promise<number> {
  const target = join(folder, 'ffmpeg');
  mkdirSync(target);
  const input = join(source, 'film.mp4');
  const hls = [
    '-f',
    'hls',
    '-hls_time',
    String(SEGMENT_SECONDS),
    '-hls_segment_type',
    'fmp4',
    '-hls_playlist_type',
    'vod',
  ];
  const args = ['-v', 'error', '-i', input, '-map', '0', '-c', 'copy', ...hls, join(target, 'index.m3u8')];
  return await timeProgram('ffmpeg', args, target, sync);
}

async function timeProgram(path: string, args: readonly string[], target: string, sync: boolean): Promise<number> {
  const startedAt = performance.now();
  await run(path, args);
  if (sync) await run('sync', filesIn(target));
  const milliseconds = performance.now() - startedAt;
  rmSync(target, { recursive: true });
  return milliseconds;
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}

/** A film of some 12 Mbit/s, repeated until it is large: the packager holds a segment in memory at a time. */
async function makeFilmFolder(folder: string): Promise<string> {
  mkdirSync(folder);
  const [clip, film] = [join(folder, 'clip.mp4'), join(folder, 'film.mp4')];
  await encode(
    clip,
    '1920x1080',
    ['-b:v', '12M', '-maxrate', '12M', '-bufsize', '24M', '-c:a', 'aac', '-b:a', '192k'],
    true,
  );
  const repeats = Math.ceil(FILM_BYTES / statSync(clip).size);
  const copy = ['-map', '0', '-c', 'copy', '-movflags', '+faststart', film];
  await run('ffmpeg', ['-v', 'error', '-stream_loop', String(repeats - 1), '-i', clip, ...copy]);
  rmSync(clip);
  return folder;
}

/** Three renditions of video, two languages, and two files of subtitles: some 65 MB. */
async function makeSevenStreams(folder: string): Promise<string> {
  mkdirSync(folder);
  for (const [height, rate] of [
    ['1080', '30M'],
    ['720', '14M'],
    ['360', '6M'],
  ] as const) {
    const size = `${(Number(height) * 16) / 9}x${height}`;
    await encode(join(folder, `video-${height}.mp4`), size, ['-b:v', rate], false);
  }
  for (const language of ['en', 'de']) {
    const tone = ['-f', 'lavfi', '-i', 'sine=r=48000:d=10', '-c:a', 'aac', '-b:a', '192k'];
    await run('ffmpeg', ['-v', 'error', ...tone, join(folder, `sound.${language}.m4a`)]);
    writeFileSync(join(folder, `text.${language}.vtt`), 'WEBVTT\n\n00:01.000 --> 00:03.000\nGood evening\n');
  }
  return folder;
}

async function encode(path: string, size: string, options: readonly string[], hasSound: boolean): Promise<void> {
  const picture = ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=25:d=10,noise=alls=20:allf=t`];
  const sound = hasSound ? ['-f', 'lavfi', '-i', 'sine=r=48000:d=10'] : [];
  const coding = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '50', '-sc_threshold', '0'];
  await run('ffmpeg', ['-v', 'error', ...picture, ...sound, ...coding, ...options, '-movflags', '+faststart', path]);
}
