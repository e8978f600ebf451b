import { after } from 'node:test';
import { openPostgres } from '#jobs/store/postgres/open-postgres.ts';
import { startPostgres } from '../postgres/postgres-server.ts';
import { describeJobControl } from './control-contract.ts';

const server = await startPostgres({ after });

describeJobControl('PostgreSQL', async () => {
  const url = await server.createDatabase();
  return async () => (await openPostgres(url, 4)).runner;
});
