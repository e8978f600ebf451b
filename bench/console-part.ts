import { join } from 'node:path';
import type { Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';
import { launchBrowser } from '../test/console/browser.ts';
import { type BenchContext, startBenchService } from './bench-context.ts';
import { progress } from './measuring.ts';
import { type Target, targetsTable } from './report.ts';

const JOBS = 10_000;
/** The jobs lie this far apart, so that the list reaches back some days. */
const JOB_INTERVAL_MS = 30_000;
/** Jobs that are submitted, and fail, while the list is scrolled. */
const LIVE_JOB_INTERVAL_MS = 100;
/** Each frame replaces most rows in view, and the browser draws them without a graphics processor. */
const MAX_FRAME_P95_MS = 100;

/** Rows and frames while the browser scrolled from the newest job to the oldest. */
interface Scrolled {
  readonly seconds: number;
  readonly rows: number;
  readonly maxRenderedRows: number;
  readonly frameP50Ms: number;
  readonly frameP95Ms: number;
  readonly frameMaxMs: number;
  readonly longTasks: number;
  readonly longestTaskMs: number;
}

/** The console's list of 10,000 jobs: the time to its first rows, and how smoothly it scrolls to the last one. */
export async function consolePart(context: BenchContext): Promise<string> {
  progress(`recording ${JOBS} jobs`);
  await recordJobs(join(context.folder, 'console', 'data'));
  const service = await startBenchService(context, 'console', { readBack: false });
  await using _service = service;
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const startedAt = performance.now();
    await page.goto(`${service.base}/`);
    await page.locator('.jobs tbody tr').first().waitFor();
    const firstRowsMs = performance.now() - startedAt;
    progress('scrolling');
    const inputs = [{ type: 'local_file_path', path: '/media/none.mp4' }];
    const live = setInterval(() => void service.submit('/v2/c2pa/video', { inputs }), LIVE_JOB_INTERVAL_MS);
    const scrolled = (await page.evaluate(`(${scrollThrough.toString()})(${JOBS})`)) as Scrolled;
    clearInterval(live);
    return reportOf(firstRowsMs, scrolled);
  } finally {
    await browser.close();
  }
}

async function recordJobs(dataDir: string): Promise<void> {
  const store = await openSqlite(dataDir);
  const ids = new JobIds();
  const startMs = Date.now() - JOBS * JOB_INTERVAL_MS;
  const submission = (index: number): Submission => ({
    operation: 'c2pa-video',
    request: { inputs: [{ type: 'local_file_path', path: `/media/film-${index}.mp4` }] },
    sync: false,
  });
  const record = async (index: number) => {
    const queuedAt = new Date(startMs + index * JOB_INTERVAL_MS);
    const jobId = ids.next(queuedAt.getTime());
    await store.submitJob({ ...submission(index), jobId, queuedAt });
    await store.cancelJob(jobId);
  };
  await Promise.all(Array.from({ length: JOBS }, (_, index) => record(index)));
  await store.close();
}

/** Runs in the browser: scrolls by most of a window each frame, until the oldest of so many jobs is in view. */
async function scrollThrough(jobs: number): Promise<Scrolled> {
  // biome-ignore lint/suspicious/noExplicitAny: the types of browsers are not loaded here.
  const { document, scrollTo, innerHeight, PerformanceObserver, requestAnimationFrame } = globalThis as any;
  const tasks: number[] = [];
  new PerformanceObserver((list: { getEntries(): { duration: number }[] }) => {
    for (const { duration } of list.getEntries()) tasks.push(duration);
  }).observe({ type: 'longtask' });
  const frames: number[] = [];
  const nextFrame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));
  let [y, rendered, at] = [0, 0, await nextFrame()];
  const startedAt = at;
  const table = document.querySelector('.jobs');
  const lastRow = () =>
    Number([...document.querySelectorAll('.jobs tr[aria-rowindex]')].at(-1)?.getAttribute('aria-rowindex'));
  while (lastRow() <= jobs || table.getBoundingClientRect().bottom > innerHeight + 100) {
    y = Math.min(y + innerHeight * 0.8, document.documentElement.scrollHeight - innerHeight);
    scrollTo(0, y);
    const now = await nextFrame();
    frames.push(now - at);
    at = now;
    rendered = Math.max(rendered, document.querySelectorAll('.jobs tbody tr').length);
  }
  frames.sort((a, b) => a - b);
  const share = (part: number) => frames[Math.floor(frames.length * part)] ?? 0;
  return {
    seconds: (at - startedAt) / 1000,
    rows: lastRow() - 1,
    maxRenderedRows: rendered,
    frameP50Ms: share(0.5),
    frameP95Ms: share(0.95),
    frameMaxMs: frames.at(-1) ?? 0,
    longTasks: tasks.length,
    longestTaskMs: Math.max(0, ...tasks),
  };
}

function reportOf(firstRowsMs: number, seen: Scrolled): string {
  const ms = (value: number) => `${Math.round(value)} ms`;
  const targets: Target[] = [
    {
      statement: `19 of 20 frames within ${MAX_FRAME_P95_MS} ms while the list is scrolled`,
      measured: ms(seen.frameP95Ms),
      held: seen.frameP95Ms <= MAX_FRAME_P95_MS,
    },
  ];
  return [
    `## The console's list of ${seen.rows.toLocaleString('en')} jobs, while 10 jobs a second are submitted and fail`,
    [
      '| | |',
      '|---|---|',
      `| from the request of the page to the first rows | ${ms(firstRowsMs)} |`,
      `| scrolled from the newest job to the oldest | ${seen.seconds.toFixed(1)} s |`,
      `| rows in the document at most | ${seen.maxRenderedRows} |`,
      `| frames: median, 95th percentile, longest | ${ms(seen.frameP50Ms)}, ${ms(seen.frameP95Ms)}, ${ms(seen.frameMaxMs)} |`,
      `| tasks over 50 ms: number, longest | ${seen.longTasks}, ${ms(seen.longestTaskMs)} |`,
    ].join('\n'),
    '### Targets',
    targetsTable(targets),
  ].join('\n\n');
}
