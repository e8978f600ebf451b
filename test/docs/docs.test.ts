import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'smol-toml';
import { configSchema } from '#config/config-schema.ts';
import { configurationPage } from '../../scripts/configuration-page.ts';
import { consoleModules } from '../../scripts/console-modules.ts';
import { errorsPage } from '../../scripts/errors-page.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { blocksOf, type CodeBlock, ROOT } from './code-blocks.ts';

const run = promisify(execFile);
const MAX_README_LINES = 150;

const PAGES = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', 'SECURITY.md', ...pagesBelow('docs')];

function pagesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));
}

const BLOCKS = PAGES.flatMap(blocksOf);
const blocks = (info: string): CodeBlock[] => BLOCKS.filter((block) => block.info === info);

describe('the documentation', () => {
  let service: RunningService;
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'attestream-docs-'));
    service = await startService({ folder });
  });
  after(async () => {
    await service.stop();
    rmSync(folder, { recursive: true });
  });

  test('has a README that a visitor reads to its end', () => {
    const lines = readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n').length;
    assert.ok(lines <= MAX_README_LINES, `README.md has ${lines} lines`);
  });

  test('links to files that are there', () => {
    for (const page of PAGES) {
      const text = readFileSync(join(ROOT, page), 'utf8');
      for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)) {
        const path = join(ROOT, dirname(page), target);
        assert.ok(existsSync(path), `${page} links to ${relative(ROOT, path)}`);
      }
    }
  });

  test('shows the configuration as the schema and config/service.toml have it', () => {
    assert.equal(readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8'), configurationPage());
  });

  test('shows the errors as the catalogue has them', () => {
    assert.equal(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8'), errorsPage());
  });

  test('states no figure of an error but those that its message always states', () => {
    const folder = join(ROOT, 'src/errors/catalogue');
    const source = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const figures = errorsPage().match(/(?:\p{L}+ )?\d[\d.]*(?: \p{L}+)?/gu) ?? [];
    assert.ok(figures.length > 0);
    assert.deepEqual(
      figures.filter((figure) => !source.some((text) => text.includes(figure))),
      [],
    );
  });

  test('has the modules of the console as "npm run docs" writes them', () => {
    for (const [name, code] of consoleModules()) {
      assert.equal(readFileSync(join(ROOT, 'console/shared', name), 'utf8'), code);
    }
  });

  test('shows requests that the service carries out', async () => {
    const commands = blocks('sh run');
    assert.ok(commands.length > 0);
    for (const { page, text } of commands) {
      const command = text.replaceAll('localhost:8080', new URL(service.base).host).replaceAll('/tmp/', `${folder}/`);
      const { stdout } = await run('sh', ['-ec', command], { cwd: ROOT, timeout: 600_000 });
      const result = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
      assert.equal(result.status, 'succeeded', `${page}: ${stdout}`);
    }
  });

  test('shows JSON and TOML that can be read, and a configuration that is taken', () => {
    for (const { text } of blocks('json')) JSON.parse(text);
    for (const { text, page } of blocks('toml')) {
      const { error } = configSchema.safeParse({ signing: IDENTITY, ...parse(text) });
      assert.equal(error, undefined, page);
    }
  });

  test('shows a check of callbacks that takes what the service signs, and nothing else', async () => {
    const [block] = blocks('js');
    assert.ok(block !== undefined);
    const { isFromAttestream } = await import(`data:text/javascript,${encodeURIComponent(block.text)}`);
    const body = '{"job_id":"1"}';
    const time = Math.floor(Date.now() / 1000);
    const header = (secret: string, at: number): string =>
      `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;
    assert.equal(isFromAttestream(header('right', time), body, 'right'), true);
    assert.equal(isFromAttestream(header('wrong', time), body, 'right'), false);
    assert.equal(isFromAttestream(header('right', time - 3600), body, 'right'), false);
    assert.equal(isFromAttestream('', body, 'right'), false);
  });
});

/** A shared database needs a configured identity; pages show one key at a time. */
const IDENTITY = { certificate_path: 'chain.pem', private_key_path: 'key.pem' };
