import { after } from 'node:test';
import { PostgresJobStore } from '#jobs/store/postgres/postgres-job-store.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { describeJobStore } from './store-contract.ts';

const server = await startPostgres({ after });

describeJobStore('PostgreSQL', async () => {
  const url = await createJobsDatabase(server);
  return () => PostgresJobStore.open(url, 4, NO_LOG);
});
