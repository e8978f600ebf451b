import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { answerFor, serve } from '../support/servers/http-server.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** The jobs of a service: how they are copied while it is stopped, and the variables with which it has those of the copy. */
interface CopiedJobs {
  readonly settings: Readonly<Record<string, string>>;
  copy(): Promise<() => Promise<Readonly<Record<string, string>>>>;
}

const ENGINES: Readonly<Record<string, (t: TestContext, folder: string) => Promise<CopiedJobs>>> = {
  'the embedded store': async (_t, folder) => ({
    settings: {},
    copy: async () => {
      cpSync(join(folder, 'data'), join(folder, 'copy'), { recursive: true });
      return async () => {
        rmSync(join(folder, 'data'), { recursive: true });
        cpSync(join(folder, 'copy'), join(folder, 'data'), { recursive: true });
        return {};
      };
    },
  }),
  PostgreSQL: async (t, folder) => {
    const server = await startPostgres(t);
    const paths = writeIdentity(folder, await testIdentity());
    const identity = {
      SERVICE__SIGNING__CERTIFICATE_PATH: paths.certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: paths.privateKeyPath,
    };
    const url = await server.createDatabase();
    const settings = { ...identity, SERVICE__JOBS__DATABASE_URL: url };
    const copyOf = (from: string) => server.createDatabase(new URL(from).pathname.slice(1));
    return {
      settings,
      copy: async () => {
        const copy = await copyOf(url);
        return async () => ({ ...settings, SERVICE__JOBS__DATABASE_URL: await copyOf(copy) });
      },
    };
  },
};

describe('jobs that are restored from a copy, beside the outputs', () => {
  for (const [engine, jobsOf] of Object.entries(ENGINES)) {
    test(`run again where they had not ended at the copy, and keep their outputs: ${engine}`, async (t) => {
      const folder = temporaryFolder();
      const { settings, copy } = await jobsOf(t, folder);
      const content = smallWav();
      const isHeld = { late: true };
      const server = await serve(t, (request, response) => {
        if (request.url === '/late.wav' && isHeld.late) return;
        const { status, headers, part } = answerFor(request, { content, ranges: true });
        response.writeHead(status, headers).end(part);
      });
      const inputOf = (name: string) => ({ inputs: [{ type: 'remote_file_url', url: `${server.base}/${name}.wav` }] });

      const first = await startService({ folder, settings });
      const early = await first.runSync('/v2/sync/c2pa/audio', inputOf('early'));
      const late = await first.submit('/v2/c2pa/audio', inputOf('late'));
      await until(() => server.seen.some(({ path }) => path === '/late.wav'));
      process.kill(first.pid, 'SIGKILL');
      await first.ended;
      const restore = await copy();

      isHeld.late = false;
      const second = await startService({ folder, settings });
      const ended = await second.waitFor(late);
      await second.stop();
      const path = ended.results[0]?.output_path ?? '';
      const published = readFileSync(path);
      const earlyPublished = readFileSync(early.results[0]?.output_path ?? '');

      // With outputs elsewhere at first, no published byte changes.
      const elsewhere = join(folder, 'elsewhere');
      const apart = { ...(await restore()), SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: elsewhere };
      const third = await startService({ folder, settings: apart });
      assert.equal((await third.waitFor(late)).results[0]?.output_path, join(elsewhere, 'late_c2pa.wav'));
      await third.stop();
      assert.ok(published.equals(readFileSync(path)));

      const fourth = await startService({ folder, settings: await restore() });
      assert.equal((await fourth.waitFor(late)).results[0]?.output_path, path);
      assert.deepEqual((await fourth.lookUp(early.job_id)).results, early.results);
      await fourth.stop();
      assert.ok(published.equals(readFileSync(path)));
      assert.ok(earlyPublished.equals(readFileSync(early.results[0]?.output_path ?? '')));
    });
  }
});
