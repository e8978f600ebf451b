import { openSqlite } from '#jobs/store/sqlite/open-sqlite.ts';
import { describeJobStore } from './store-contract.ts';
import { temporaryFolder } from './test-jobs.ts';

describeJobStore('SQLite', async (t) => {
  const folder = await temporaryFolder(t);
  return () => openSqlite(folder);
});
