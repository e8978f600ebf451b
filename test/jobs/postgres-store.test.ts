import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { JobIds } from '#jobs/job-ids.ts';
import { openPostgresEngine } from '#jobs/queue/postgres-engine.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { finish, leased } from '../support/jobs/leases.ts';
import { NO_LOG, scripts } from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { describeJobControl } from './control-contract.ts';
import { describeRecognition } from './recognition-contract.ts';
import { describeRetries } from './retry-contract.ts';
import { describeJobStore } from './store-contract.ts';

const server = await startPostgres({ after });

describe('PostgreSQL', () => {
  const databaseFor = async () => {
    const url = await createJobsDatabase(server);
    return async () => (await openPostgresEngine(url, 4, NO_LOG)).store;
  };
  describeJobStore('PostgreSQL', databaseFor);
  describeJobControl('PostgreSQL', databaseFor);
  describeRecognition('PostgreSQL', databaseFor);
  describeRetries('PostgreSQL', databaseFor);

  test('gives inputs to one of two retries that two nodes submit at the same time', async (t) => {
    const ids = new JobIds();
    const open = await databaseFor();
    const nodes = [await open(), await open()] as const;
    t.after(() => Promise.all(nodes.map((node) => node.close())));
    for (let round = 0; round < 10; round += 1) {
      const [retriedFrom, queuedAt] = [ids.next(), new Date()];
      await nodes[0].submitJob({ ...scripts(['a', 'b', 'c']), jobId: retriedFrom, queuedAt });
      for (const lease of await leased(nodes[0], retriedFrom, 3)) {
        const lost = { reason: 'SOURCE_EMPTY', details: { name: 'a' }, location: {} } as const;
        await finish(nodes[0], lease, failedEntry(lease.inputIndex, lost));
      }
      const answers = await Promise.all(
        nodes.map(async (node, first) => {
          const inputIndexes = [first, first + 1];
          const retriedInputs = { inputIndexes, isOnce: true };
          return node.submitJob({ ...scripts(['a', 'b']), jobId: ids.next(), queuedAt, retriedFrom, retriedInputs });
        }),
      );
      assert.equal(answers.filter((known) => known === null).length, 1);
    }
  });
});
