import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startService } from '../../scripts/running-service.ts';

const HERE = dirname(fileURLToPath(import.meta.url));
const HIDE = ['--import', join(HERE, 'hide-s3-sdk.ts')];

describe('a service without the AWS SDK', () => {
  for (const setting of ['SERVICE__INPUT_RESOLVERS__S3__REGION', 'SERVICE__OUTPUT_SINKS__S3__BUCKETS']) {
    test(`does not start with ${setting}, and names the remedy`, (context) => {
      const folder = mkdtempSync(join(tmpdir(), 'attestream-s3-sdk-'));
      context.after(() => rmSync(folder, { recursive: true }));
      const { status, stdout } = spawnSync(process.execPath, [...HIDE, join(HERE, '../../src/main.ts')], {
        cwd: folder,
        encoding: 'utf8',
        timeout: 600_000,
        env: { ...process.env, SERVICE__SERVER__BIND_ADDR: '127.0.0.1:0', [setting]: 'somewhere' },
      });
      assert.equal(status, 1, stdout);
      const fatal = stdout.split('\n').find((line) => line.includes('"level":"fatal"'));
      const last = JSON.parse(fatal ?? '') as { reason: string; msg: string };
      assert.equal(last.reason, 'OPTIONAL_PACKAGES_MISSING');
      assert.ok(last.msg.includes('npm install "@aws-sdk/client-s3@^'));
    });
  }

  test('starts where S3 is not configured', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'attestream-s3-sdk-'));
    context.after(() => rmSync(folder, { recursive: true }));
    const service = await startService({ folder, nodeArguments: HIDE });
    await service.stop();
  });
});
