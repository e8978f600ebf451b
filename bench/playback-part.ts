import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import type { RunningService } from '../scripts/running-service.ts';
import { launchBrowser } from '../test/console/browser.ts';
import { type BenchContext, startBenchService } from './bench-context.ts';
import { median, progress } from './measuring.ts';

const run = promisify(execFile);

const FILM_SECONDS = 30;

/** Answers at once, in place of the reader. */
const NO_READER = `addEventListener('message', ({ data: { id } }) =>
  postMessage({ id, verification: { state: 'valid', summary: '', codes: [], manifests: [] }, raw: null }));`;

interface Playback {
  readonly frames: number;
  readonly dropped: number;
  readonly verified: number;
}

/** A 1080p publication in the console's player, each fragment verified, beside the same player with a reader that does nothing. */
export async function playbackPart(context: BenchContext): Promise<string> {
  await using service = await startBenchService(context, 'playback', { readBack: false });
  progress('encoding the film');
  const job = await signFilm(service, join(context.folder, 'film'));
  const browser = await launchBrowser();
  const runs: Record<'with' | 'without', Playback[]> = { with: [], without: [] };
  const loads: number[] = [];
  try {
    for (let round = 1; round <= context.rounds; round += 1) {
      for (const verification of ['without', 'with'] as const) {
        progress(`round ${round} of ${context.rounds}: ${verification} verification`);
        loads.push(loadavg()[0] ?? 0);
        runs[verification].push(await play(browser, `${service.base}/#/play?job=${job}&index=0`, verification));
      }
    }
  } finally {
    await browser.close();
  }
  return [
    `## A publication in 1080p, played in the console by Chromium without a graphics processor (${context.rounds} rounds)`,
    `${FILM_SECONDS} s of H.264 with 30 frames a second and 12 Mbit/s, and AAC, in fragments of 4 s. Load average before a run: ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}.`,
    '| | frames dropped in each run | median | frames | fragments verified |',
    '|---|---|---|---|---|',
    row('every fragment verified', runs.with),
    row('a reader that does nothing', runs.without),
  ]
    .join('\n\n')
    .replaceAll('|\n\n|', '|\n|');
}

function row(name: string, runs: readonly Playback[]): string {
  const dropped = runs.map((one) => one.dropped);
  return `| ${name} | ${dropped.join(', ')} | ${median(dropped)} | ${runs[0]?.frames} | ${runs[0]?.verified} |`;
}

/** The part of the browser's video element that is used here. */
interface PlayedVideo {
  muted: boolean;
  addEventListener(type: string, listener: () => void, options: { once: boolean }): void;
  play(): Promise<void>;
  getVideoPlaybackQuality(): { totalVideoFrames: number; droppedVideoFrames: number };
}

async function play(browser: Browser, url: string, verification: 'with' | 'without'): Promise<Playback> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  if (verification === 'without') {
    await page.route('**/console/reader-worker.js', (route) =>
      route.fulfill({ body: NO_READER, contentType: 'text/javascript' }),
    );
  }
  await page.goto(url);
  const quality = await page.locator('video').evaluate(async (video: PlayedVideo) => {
    const ended = new Promise<void>((resolve) => video.addEventListener('ended', resolve, { once: true }));
    video.muted = true;
    await video.play();
    await ended;
    const { totalVideoFrames: frames, droppedVideoFrames: dropped } = video.getVideoPlaybackQuality();
    return { frames, dropped };
  });
  const verified = await verifiedIn(page, verification);
  await page.close();
  return { ...quality, verified };
}

/** Counts the fragments that turned green; the reader that does nothing answers, but reads none. */
async function verifiedIn(page: Page, verification: 'with' | 'without'): Promise<number> {
  return verification === 'without' ? 0 : await page.locator('rect.valid, rect.trusted').count();
}

async function signFilm(service: RunningService, folder: string): Promise<string> {
  mkdirSync(folder);
  const inputs = [
    ...['-f', 'lavfi', '-i', `testsrc2=s=1920x1080:r=30:d=${FILM_SECONDS},noise=alls=12:allf=t`],
    ...['-f', 'lavfi', '-i', `sine=r=48000:d=${FILM_SECONDS}`],
  ];
  const video = ['-c:v', 'libx264', '-preset', 'veryfast', '-pix_fmt', 'yuv420p', '-g', '60', '-sc_threshold', '0'];
  const rate = ['-b:v', '12M', '-maxrate', '12M', '-bufsize', '24M', '-c:a', 'aac', '-b:a', '192k'];
  await run('ffmpeg', ['-v', 'error', ...inputs, ...video, ...rate, join(folder, 'film.mp4')]);
  const job = await service.runSync('/v2/sync/c2pa/package', {
    inputs: [{ type: 'local_folder_path', path: folder }],
    params: { segment_duration: 4 },
  });
  if (job.status !== 'succeeded') throw new Error(`the service failed: ${job.results[0]?.error}`);
  return job.job_id;
}
