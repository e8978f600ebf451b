// `npm run screenshots`: writes the pictures of the console in the documentation, docs/images, in light and dark colours. It
// runs the service, signs what the pictures show, and takes them with Debian's Chromium. ffmpeg makes them small.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { makeIdentity } from '../bench/identity.ts';
import { launchBrowser } from '../test/console/browser.ts';
import { type RunningService, startService } from './running-service.ts';

const ROOT = join(fileURLToPath(import.meta.url), '../..');
const SAMPLES = join(ROOT, 'samples');
const { values } = parseArgs({
  options: {
    to: { type: 'string', default: join(ROOT, 'docs/images') },
    width: { type: 'string', default: '1200' },
    height: { type: 'string', default: '800' },
  },
});

/** A picture: its name, what it shows, and what has to be there first. */
interface Picture {
  readonly name: string;
  readonly hash: string;
  prepare(page: Page): Promise<void>;
}

interface Jobs {
  readonly film: string;
  readonly altered: string;
  readonly interview: string;
  readonly batch: string;
}

/** A path that is fit to be seen. */
const folder = join(tmpdir(), 'newsroom');
mkdirSync(folder);
try {
  const { certificatePath, keyPath, rootPath } = makeIdentity(join(folder, 'identity'), 'Example Broadcasting');
  cpSync(rootPath, join(folder, 'broadcasters.pem'));
  await using service = await startService({
    folder,
    settings: {
      SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: folder,
      SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: keyPath,
      SERVICE__TRUST__ANCHORS: join(folder, 'broadcasters.pem'),
    },
  });
  const jobs = await makeJobs(service);
  const browser = await launchBrowser();
  mkdirSync(values.to, { recursive: true });
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const picture of picturesOf(jobs)) await take(browser, service.base, picture, colorScheme);
  }
  await browser.close();
} finally {
  rmSync(folder, { recursive: true });
}

function picturesOf({ film, altered, interview, batch }: Jobs): Picture[] {
  const verdict = (page: Page): Promise<void> => page.locator('.verdict').first().waitFor();
  return [
    { name: 'jobs', hash: '#/jobs', prepare: (page) => page.getByRole('table').waitFor() },
    {
      name: 'failed-batch',
      hash: `#/jobs/${batch}`,
      prepare: (page) => page.getByText('SOURCE_NOT_FOUND').first().waitFor(),
    },
    { name: 'new-job', hash: '#/new/c2pa-video', prepare: (page) => page.getByRole('form').first().waitFor() },
    { name: 'inspect-film', hash: `#/inspect?job=${interview}&index=0`, prepare: verdict },
    { name: 'inspect-altered-publication', hash: `#/inspect?job=${altered}&index=0`, prepare: verdict },
    { name: 'play-publication', hash: `#/play?job=${film}&index=0`, prepare: (page) => playTo(page, 1.2) },
    { name: 'play-altered-publication', hash: `#/play?job=${altered}&index=0`, prepare: (page) => playTo(page, 3) },
    {
      name: 'status',
      hash: '#/status',
      prepare: (page) => page.locator('.sparkline').first().waitFor(),
    },
  ];
}

async function take(
  browser: Browser,
  base: string,
  { name, hash, prepare }: Picture,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  const viewport = { width: Number(values.width), height: Number(values.height) };
  const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' });
  await page.goto(`${base}/${hash}`);
  await prepare(page);
  const raw = join(folder, `${name}.png`);
  await page.screenshot({ path: raw });
  await page.close();
  const target = join(values.to, `${name}-${colorScheme}.png`);
  shrink(raw, target);
  console.log(`${target}: ${Math.round(readFileSync(target).length / 1000)} kB`);
}

/** Reduces a picture to 256 colours, which is all that a page of text has. */
function shrink(from: string, to: string): void {
  const palette = 'split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=dither=none';
  const png = ['-compression_level', '100', '-pred', 'mixed'];
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', from, '-vf', palette, ...png, to]);
}

/** The part of the browser's video element that is used here. */
interface PlayedVideo {
  muted: boolean;
  currentTime: number;
  play(): Promise<void>;
  pause(): void;
}

/** Verifies all fragments, and shows the picture at a time of the programme. */
async function playTo(page: Page, seconds: number): Promise<void> {
  await page.getByRole('button', { name: 'Verify all fragments' }).click();
  await page.getByRole('button', { name: /to verify|Verify all/ }).waitFor({ state: 'detached' });
  await page.locator('video').evaluate(async (video: PlayedVideo, to: number) => {
    video.muted = true;
    await video.play();
    video.pause();
    video.currentTime = to;
  }, seconds);
  await page.locator('.on-screen .state').waitFor();
}

async function makeJobs(service: RunningService): Promise<Jobs> {
  const file = (path: string) => ({ type: 'local_file_path', path });
  const copyOf = (name: string, as: string): string => {
    cpSync(join(SAMPLES, name), join(folder, as), { recursive: true });
    return join(folder, as);
  };
  const programme = join(folder, 'evening-programme');
  mkdirSync(programme);
  for (const name of ['evening-light.mp4', 'evening-light.de.m4a', 'evening-light.en.vtt']) {
    cpSync(join(SAMPLES, name), join(programme, name));
  }
  const { job_id: film } = await service.runSync('/v2/sync/c2pa/package', {
    inputs: [{ type: 'local_folder_path', path: programme }],
    params: { segment_duration: 1, tracks: [{ file: 'evening-light.mp4', language: 'en' }] },
  });
  const altered = await service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path: copyOf('publication', 'late-news') }],
    params: { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init-*.mp4', frag_pattern: 'fragment-*.m4s' },
  });
  alter(join(altered.results[0]?.output_path ?? '', 'fragment-0-2.m4s'));
  const { results } = await service.runSync('/v2/sync/c2pa/video', {
    inputs: [file(copyOf('evening-light.mp4', 'interview.mp4'))],
  });
  const { job_id: interview } = await service.runSync('/v2/sync/c2pa/video', {
    inputs: [file(results[0]?.output_path ?? '')],
    params: { assertions: [{ label: 'com.example.review', data: { reviewer: 'desk-4', approved: true } }] },
  });
  const notes = Array.from({ length: 3 }, (_, index) => join(folder, `notes-${index + 1}.mp3`));
  for (const path of notes) writeFileSync(path, 'no sound');
  const missing = Array.from({ length: 54 }, (_, index) => join(folder, `weather-${index + 1}.mp3`));
  const { job_id: batch } = await service.runSync('/v2/sync/c2pa/audio', {
    inputs: [copyOf('four-notes.mp3', 'headlines.mp3'), ...missing, ...notes].map(file),
  });
  return { film, altered: altered.job_id, interview, batch };
}

function alter(path: string): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8((bytes.at(-20) ?? 0) ^ 1, bytes.length - 20);
  writeFileSync(path, bytes);
}
