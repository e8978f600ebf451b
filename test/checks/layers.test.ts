import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

describe('the layer rule', () => {
  test('holds on the source tree', () => {
    const { status, output } = check('scripts/check-layers.ts', 'src');
    assert.equal(status, 0, output);
  });

  const seeds: readonly { readonly violation: string; readonly file: string; readonly source: string }[] = [
    {
      violation: 'an import from above',
      file: 'bytes/copy.ts',
      source: "import { formats } from '#formats/formats.ts';",
    },
    {
      violation: 'an import of types from above',
      file: 'formats/flac/flac.ts',
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
      source: "const server = await import('#http/http-server.ts');",
    },
    {
      violation: 'an import over several lines from above',
      file: 'outputs/sink.ts',
      source: "import {\n  signFile,\n  type FileAdmission,\n} from '#operations/sign-file.ts';",
    },
    {
      violation: 'an import from beside',
      file: 'inputs/local.ts',
      source: "import { placeFile } from '#outputs/placement.ts';",
    },
    {
      violation: 'a relative import that leaves its room',
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
      file: 'inputs/s3/s3-file.ts',
      source: "const sdk = await import('@aws-sdk/client-s3');",
    },
    {
      violation: 'a room without a place in the layers',
      file: 'extras/thing.ts',
      source: "import { AppError } from '#errors/app-error.ts';",
    },
  ];
  for (const { violation, file, source } of seeds) {
    test(`fails on ${violation}, and names the file`, (context) => {
      const folder = treeWith(context, { [file]: `${source}\n` });
      const { status, output } = check('scripts/check-layers.ts', folder);
      assert.equal(status, 1, output);
      assert(output.includes(file), output);
    });
  }

  test('allows imports downwards, to leaves, and within a room', (context) => {
    const folder = treeWith(context, {
      'main.ts': "import { createHttpServer } from '#http/http-server.ts';\n",
      'formats/riff/riff.ts': "import { read } from '#bytes/read.ts';\nimport { window } from '../window.ts';\n",
      'bytes/read.ts': "import { AppError } from '#errors/app-error.ts';\nimport { open } from 'node:fs/promises';\n",
      'provenance/author.ts': "import { Builder } from '@contentauth/c2pa-node';\n",
    });
    const { status, output } = check('scripts/check-layers.ts', folder);
    assert.equal(status, 0, output);
  });
});

describe('the house rules', () => {
  test('hold on the whole project', () => {
    const { status, output } = check('scripts/check-house.ts');
    assert.equal(status, 0, output);
  });

  const seeds: readonly { readonly violation: string; readonly file: string; readonly source: string }[] = [
    { violation: 'a file that is called helpers', file: 'bytes/helpers.ts', source: '' },
    { violation: 'a file that is called a manager', file: 'jobs/job-manager.ts', source: '' },
    { violation: 'a test that is switched off', file: 'a.test.ts', source: `test.${'skip'}('signs', () => {});` },
    { violation: 'a test that alone runs', file: 'a.test.ts', source: `test('signs', { ${'only'}: true }, () => {});` },
    { violation: 'something left undone', file: 'a.ts', source: `// ${'TO'}${'DO'}: bound this` },
    { violation: 'a file of 401 lines', file: 'a.ts', source: 'void 0;\n'.repeat(401) },
  ];
  for (const { violation, file, source } of seeds) {
    test(`fail on ${violation}, and name the file`, (context) => {
      const { status, output } = check('scripts/check-house.ts', treeWith(context, { [file]: source }));
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

function check(script: string, ...folders: string[]): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, script), ...folders], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}
