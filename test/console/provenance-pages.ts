import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import type { JobResultResponse } from '#contract/job.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { type TestIdentity, testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertAccessible, launchBrowser, openPage } from './browser.ts';

export const SAMPLES = fileURLToPath(new URL('../../samples/', import.meta.url));
const PATTERNS = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init-*.mp4', frag_pattern: 'fragment-*.m4s' };
/** The second fragment of the sample's picture, and its times in seconds: it begins after one of 2.6. */
export const ALTERED = { file: 'fragment-0-2.m4s', index: 1, seconds: 2.6, endSeconds: 4.88 };

/** Playlists of the sample publication with subtitles, and a language for its sound. */
export const SUBTITLED = {
  'master.m3u8': [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,URI="media_1.m3u8"',
    '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,URI="text.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=142634,RESOLUTION=640x360,CODECS="avc1.64001e,mp4a.40.2",AUDIO="a",SUBTITLES="t"',
    'media_0.m3u8\n',
  ].join('\n'),
  'text.m3u8': '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:5\n#EXTINF:5.000,\ntext.vtt\n#EXT-X-ENDLIST\n',
  'text.vtt': 'WEBVTT\n\n00:00.500 --> 00:02.000\nThe sun goes down.\n',
};

/** A job, with the path of its first output. */
type FinishedJob = JobResultResponse & { readonly output: string };

/** The pages of a service that inspect and play, in a browser. The service signs with an identity of its trust list "newsroom". */
export class ProvenancePages {
  readonly folder: string;
  readonly browser: Browser;
  /** A publisher of its list "publishers". */
  readonly publisher: TestIdentity;
  readonly #service: RunningService;

  private constructor(folder: string, publisher: TestIdentity, service: RunningService, browser: Browser) {
    this.folder = folder;
    this.publisher = publisher;
    this.#service = service;
    this.browser = browser;
  }

  static async start(): Promise<ProvenancePages> {
    const folder = temporaryFolder();
    const identity = await testIdentity();
    const { certificatePath, privateKeyPath } = writeIdentity(folder, identity);
    writeFileSync(join(folder, 'newsroom.pem'), pemOf(identity.chain.at(-1) as Buffer));
    const publisher = await testIdentity({ leaf: { commonName: 'Example publisher', organization: 'Example News' } });
    writeFileSync(join(folder, 'publishers.pem'), pemOf(publisher.chain.at(-1) as Buffer));
    const settings = {
      SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
      SERVICE__TRUST__ANCHORS: join(folder, 'newsroom.pem'),
      SERVICE__TRUST__PUBLISHER_ANCHORS: join(folder, 'publishers.pem'),
    };
    const service = await startService({ folder: join(folder, 'service'), settings });
    return new ProvenancePages(folder, publisher, service, await launchBrowser());
  }

  get base(): string {
    return this.#service.base;
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.#service.stop();
  }

  open(path: string): ReturnType<typeof openPage> {
    return openPage(this.browser, this.base, path);
  }

  async sign(path: string, input: string, params?: object): Promise<FinishedJob> {
    const isFolder = path !== '/v2/sync/c2pa/video' && path !== '/v2/sync/c2pa/audio';
    const job = await this.#service.runSync(path, {
      inputs: [{ type: isFolder ? 'local_folder_path' : 'local_file_path', path: input }],
      ...(params && { params }),
    });
    assert.equal(job.status, 'succeeded', job.results[0]?.error);
    return { ...job, output: job.results[0]?.output_path ?? '' };
  }

  /** Signs a copy of the sample publication, with other files. */
  signPublication(
    name: string,
    files: Readonly<Record<string, string | Buffer>> = {},
    patterns: Partial<typeof PATTERNS> = {},
  ): Promise<FinishedJob> {
    const input = join(this.folder, name);
    cpSync(join(SAMPLES, 'publication'), input, { recursive: true });
    for (const [path, content] of Object.entries(files)) writeFileSync(join(input, path), content);
    return this.sign('/v2/sync/c2pa/fragmented', input, { ...PATTERNS, ...patterns });
  }

  /** Writes a file, and returns its path. */
  written(name: string, bytes: Uint8Array | string): string {
    writeFileSync(join(this.folder, name), bytes);
    return join(this.folder, name);
  }
}

/** Changes a bit near the end of a file. */
export async function alter(path: string): Promise<void> {
  const bytes = await readFile(path);
  bytes.writeUInt8((bytes.at(-20) ?? 0) ^ 1, bytes.length - 20);
  await writeFile(path, bytes);
}

export const drop = (page: Page, path: string) => page.locator('input[type=file]').setInputFiles(path);
export const card = (page: Page) => page.locator('article.card');

/** Starts playback, muted, once the player has loaded what it needs for that: a load that comes after it would end it. */
export async function play(page: Page): Promise<void> {
  await page.locator('video').evaluate(async (video: PlayedVideo) => {
    video.muted = true;
    if (video.readyState < 2)
      await new Promise((resolve) => video.addEventListener('canplay', resolve, { once: true }));
    await video.play();
  });
}

/** The part of the browser's `HTMLVideoElement` that is used here. */
interface PlayedVideo {
  muted: boolean;
  currentTime: number;
  readonly readyState: number;
  addEventListener(type: string, listener: (event: unknown) => void, options: { once: boolean }): void;
  play(): Promise<void>;
}

export const secondsOf = (page: Page) => page.locator('video').evaluate((video: PlayedVideo) => video.currentTime);

/** Seeks in a video that is paused, once the player has loaded what it needs for that. */
export async function seek(page: Page, seconds: number): Promise<void> {
  await page.locator('video').evaluate(async (video: PlayedVideo, to: number) => {
    if (video.readyState < 1)
      await new Promise((resolve) => video.addEventListener('loadedmetadata', resolve, { once: true }));
    video.currentTime = to;
  }, seconds);
}

/** Changes what subtitles say. */
export const otherwise = (text: string) => text.replace('The sun', 'No sun ');
/** Exchanges two fragments in a playlist. */
export const reordered = (playlist: string) =>
  playlist.replace(/fragment-0-[12]/g, (name) => (name.endsWith('1') ? 'fragment-0-2' : 'fragment-0-1'));

/** A change of a file of a signed publication, and what the player says of it. */
interface SaidChange {
  readonly file: string;
  readonly change: (text: string) => string;
  readonly sentence: string;
  /** The sentence about fragments. */
  readonly ofFragment?: string;
  /** Timelines that are marked as changed. */
  readonly timelines: readonly string[];
}

/** Asserts that the player says from the start that a file was changed. */
export async function assertSaid(pages: ProvenancePages, job: string, output: string, said: SaidChange): Promise<void> {
  const { file, change, sentence, ofFragment = sentence, timelines } = said;
  const path = join(output, file);
  const signed = await readFile(path, 'utf8');
  await writeFile(path, change(signed));
  try {
    await using page = await pages.open(`#/play?job=${job}&index=0&path=master.m3u8`);
    await page.getByRole('alert').getByText(sentence).waitFor();
    await page.locator('.on-screen .state.invalid').waitFor();
    await card(page).getByText(ofFragment).first().waitFor();
    const marked = page.locator('.timeline', { has: page.locator('rect.changed[data-seconds="0"]') });
    assert.deepEqual(await marked.locator('figcaption strong:first-child').allTextContents(), timelines);
    await assertAccessible(page);
  } finally {
    await writeFile(path, signed);
  }
}
