import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

describe('the rules of modules', () => {
  const seeds: readonly { readonly violation: string; readonly file: string; readonly source: string }[] = [
    {
      violation: 'an import from above',
      file: 'bytes/copy.ts',
      source: "import { formats } from '#formats/formats.ts';",
    },
    {
      violation: 'an import of types from above',
      file: 'formats/riff/chunks.ts',
      source: "import type { Operation } from '#operations/operation.ts';",
    },
    {
      violation: 'a re-export from above',
      file: 'errors/catalogue.ts',
      source: "export { routes } from '#http/routes.ts';",
    },
    {
      violation: 'a lazy import from above',
      file: 'jobs/run.ts',
      source: "export const server = await import('#http/http-server.ts');",
    },
    {
      violation: 'an import over several lines from above',
      file: 'outputs/sink.ts',
      source: "import {\n  signFile,\n  type FileAdmission,\n} from '#operations/sign-file.ts';",
    },
    {
      violation: 'an import of a composition root',
      file: 'jobs/run.ts',
      source: "import { runService } from '#service.ts';",
    },
    {
      violation: 'an import of a command in a composition root',
      file: 'service.ts',
      source: "import { Terminal } from '#cli/terminal.ts';",
    },
    {
      violation: 'an import of the composition root of workers in a command',
      file: 'cli/commands/sign.ts',
      source: "import { inputRunner } from '#worker.ts';",
    },
    {
      violation: 'an import from a module of the same row',
      file: 'inputs/local.ts',
      source: "import { sinkFor } from '#outputs/output-sink.ts';",
    },
    {
      violation: 'an import of a file that is private to its module',
      file: 'publications/sign.ts',
      source: "import { readBox } from '#formats/isobmff/box.ts';",
    },
    {
      violation: 'a private file in a composition root',
      file: 'worker.ts',
      source: "import { LocalSink } from '#outputs/local/local-sink.ts';",
    },
    {
      violation: 'a relative import that leaves its module',
      file: 'formats/riff/riff.ts',
      source: "import { read } from '../../bytes/read.ts';",
    },
    {
      violation: 'the SDK outside provenance',
      file: 'operations/sign.ts',
      source: "import { Builder } from '@contentauth/c2pa-node';",
    },
    {
      violation: 'the AWS SDK outside s3, also where it is loaded late',
      file: 'inputs/s3/s3-sources.ts',
      source: "export const sdk = await import('@aws-sdk/client-s3');",
    },
    {
      violation: 'a module that has no row',
      file: 'extras/thing.ts',
      source: "import { AppError } from '#errors/app-error.ts';",
    },
  ];
  for (const { violation, file, source } of seeds) {
    test(`refuse ${violation}, and name the file`, (context) => {
      const { status, output } = lint(context, { [file]: `${source}\n` }, 'style/noRestrictedImports');
      assert.equal(status, 1, output);
      assert(output.includes(file), output);
    });
  }

  test('allow imports of public files downwards, and of any file within a module', (context) => {
    const files = {
      'main.ts': "import { createHttpServer } from '#http/http-server.ts';\n",
      'formats/riff/riff.ts': "import { read } from '#bytes/read.ts';\nimport { window } from '../window.ts';\n",
      'inputs/local/file.ts': "import { client } from '../http/client.ts';\n",
      'bytes/read.ts': "import { AppError } from '#errors/app-error.ts';\nimport { open } from 'node:fs/promises';\n",
      'provenance/author.ts': "import { Builder } from '@contentauth/c2pa-node';\n",
    };
    const { status, output } = lint(context, files, 'style/noRestrictedImports');
    assert.equal(status, 0, output);
  });

  test('refuse a cycle of imports of types alone', (context) => {
    const files = {
      'bytes/one.ts': "import type { Two } from './two.ts';\nexport type One = Two | 1;\n",
      'bytes/two.ts': "import type { One } from './one.ts';\nexport type Two = { readonly one: One };\n",
    };
    const { status, output } = lint(context, files, 'suspicious/noImportCycles');
    assert.equal(status, 1, output);
  });

  test('refuse a file of 401 lines', (context) => {
    const { status, output } = lint(context, { 'a.ts': 'void 0;\n'.repeat(401) }, 'style/noExcessiveLinesPerFile');
    assert.equal(status, 1, output);
  });

  test('refuse a function of 71 lines', (context) => {
    const body = '  void 0;\n'.repeat(71);
    const files = { 'a.ts': `export function long(): void {\n${body}}\n` };
    const { status, output } = lint(context, files, 'complexity/noExcessiveLinesPerFunction');
    assert.equal(status, 1, output);
  });
});

describe('the conventions', () => {
  test('hold on the whole project', () => {
    const { status, output } = check('scripts/check-conventions.ts');
    assert.equal(status, 0, output);
  });

  const seeds: readonly { readonly violation: string; readonly file: string; readonly source: string }[] = [
    { violation: 'a file that is called helpers', file: 'bytes/helpers.ts', source: '' },
    { violation: 'a file that is called a manager', file: 'jobs/job-manager.ts', source: '' },
    { violation: 'a test that is switched off', file: 'a.test.ts', source: `test.${'skip'}('signs', () => {});` },
    { violation: 'a test that alone runs', file: 'a.test.ts', source: `test('signs', { ${'only'}: true }, () => {});` },
    {
      violation: 'an object as a table of strings',
      file: 'a.ts',
      source: 'const NAMES: Readonly<\n  Record<string, string>\n> = {};',
    },
    {
      violation: 'such an object of the console',
      file: 'a.js',
      source: '/** Names. @type {Readonly<Record<string, string>>} */\nconst NAMES = {};',
    },
    {
      violation: 'such an object of the console that is cast',
      file: 'a.js',
      source: 'export const NAMES = /** @type {Record<string, string>} */ ({});',
    },
    { violation: 'something left undone', file: 'a.ts', source: `// ${'TO'}${'DO'}: bound this` },
  ];
  for (const { violation, file, source } of seeds) {
    test(`fail on ${violation}, and name the file`, (context) => {
      const { status, output } = check('scripts/check-conventions.ts', treeWith(context, { [file]: source }));
      assert.equal(status, 1, output);
      assert(output.includes(file), output);
    });
  }
});

/** A source folder of the given files, removed when the test is done. */
function treeWith(context: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-checks-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, source] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), source);
  }
  return folder;
}

interface Finding {
  readonly status: number | null;
  readonly output: string;
}

/** Runs one rule of the linter, as it is configured, on a source tree of the given files. */
function lint(context: TestContext, sources: Readonly<Record<string, string>>, rule: string): Finding {
  const files = Object.fromEntries(Object.entries(sources).map(([name, source]) => [`src/${name}`, source]));
  const folder = treeWith(context, files);
  copyFileSync(join(ROOT, 'biome.jsonc'), join(folder, 'biome.jsonc'));
  const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
  return run(folder, [biome, 'lint', '--vcs-enabled=false', '--colors=off', `--only=${rule}`, 'src']);
}

function check(script: string, ...folders: string[]): Finding {
  return run(ROOT, [join(ROOT, script), ...folders]);
}

function run(cwd: string, words: readonly string[]): Finding {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd, encoding: 'utf8' });
  return { status, output: stdout + stderr };
}
