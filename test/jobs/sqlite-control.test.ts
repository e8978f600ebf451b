import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';
import { temporaryFolder } from '../support/jobs/test-jobs.ts';
import { describeJobControl } from './control-contract.ts';

describeJobControl('SQLite', async (t) => {
  const folder = await temporaryFolder(t);
  return () => openSqlite(folder);
});
