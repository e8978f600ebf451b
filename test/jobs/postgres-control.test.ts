import { after } from 'node:test';
import { PostgresJobStore } from '#jobs/store/postgres/postgres-job-store.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { describeJobControl } from './control-contract.ts';
import { describeRecognition } from './recognition-contract.ts';
import { describeRetries } from './retry-contract.ts';

const server = await startPostgres({ after });

const databaseFor = async () => {
  const url = await createJobsDatabase(server);
  return () => PostgresJobStore.open(url, 4, NO_LOG);
};

describeJobControl('PostgreSQL', databaseFor);
describeRecognition('PostgreSQL', databaseFor);
describeRetries('PostgreSQL', databaseFor);
