import { openSqlite } from '#jobs/store/sqlite/open-sqlite.ts';
import { describeJobControl } from './control-contract.ts';
import { temporaryFolder } from './test-jobs.ts';

describeJobControl('SQLite', async (t) => {
  const folder = await temporaryFolder(t);
  return () => openSqlite(folder);
});
