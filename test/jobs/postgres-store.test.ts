import { after, describe } from 'node:test';
import { openPostgresEngine } from '#jobs/queue/postgres-engine.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
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
});
