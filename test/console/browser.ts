import assert from 'node:assert/strict';
import axe from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';

/** A generous bound: it is passed only where something hangs. How long a page takes depends on the machine. */
const HANG_MS = 600_000;

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--autoplay-policy=no-user-gesture-required',
];

/** Starts Debian's Chromium, as the headless shell: the whole browser takes a quarter more memory, for windows that nobody sees. */
export function launchBrowser(...flags: readonly string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: [...FLAGS, ...flags],
    timeout: 0,
  });
}

/** Pages that nobody uses. A new page costs more than a second of processor time, most of it for an empty cache. */
const idlePages = new WeakMap<Browser, Page[]>();

/** Returns an empty page, which a later test gets, cleared, when this one is done with it. */
export async function takePage(browser: Browser): Promise<Page & AsyncDisposable> {
  const page = idlePages.get(browser)?.pop() ?? (await browser.newPage());
  page.setDefaultTimeout(HANG_MS);
  return Object.assign(page, {
    [Symbol.asyncDispose]: async () => {
      await clear(page);
      idlePages.set(browser, [...(idlePages.get(browser) ?? []), page]);
    },
  });
}

/** Opens a page of a console. Errors of scripts, and requests to other servers, fail the test when the page is closed. */
export async function openPage(browser: Browser, base: string, path: string): Promise<Page & AsyncDisposable> {
  const page = await takePage(browser);
  const close = page[Symbol.asyncDispose];
  const problems: string[] = [];
  page.on('pageerror', ({ message }) => problems.push(message));
  page.on('request', (sent) => {
    if (!sent.url().startsWith(base) && !/^(data|blob):/.test(sent.url())) problems.push(`it asked for ${sent.url()}`);
  });
  await page.goto(`${base}/${path}`);
  return Object.assign(page, {
    [Symbol.asyncDispose]: async () => {
      await close();
      assert.deepEqual(problems, []);
    },
  });
}

/** Has a page look at the service at once, as when somebody comes back to its tab. */
export async function comeBackTo(page: Page): Promise<void> {
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
}

/** Undoes what a test may have done to a page, and leaves it empty. */
async function clear(page: Page): Promise<void> {
  page.removeAllListeners('pageerror').removeAllListeners('request');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.evaluate('localStorage.clear()');
  await page.goto('about:blank');
  await page.mouse.move(0, 0);
  await page.context().clearCookies();
  await page.context().setOffline(false);
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'no-preference' });
}

/** Fails where axe-core finds what keeps people with disabilities from using the page. */
export async function assertAccessible(page: Page): Promise<void> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ['violations'] }),
  );
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(
    serious.map(({ id, nodes }) => [id, nodes[0]?.html]),
    [],
  );
}
