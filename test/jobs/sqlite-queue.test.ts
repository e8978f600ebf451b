import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { openSqliteEngine } from '#jobs/queue/sqlite-queue.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { describeJobQueue } from './queue-contract.ts';

describeJobQueue('SQLite', async (scope) => {
  const folder = temporaryFolder();
  const open = async (dataDir: string) => {
    const engine = await openSqliteEngine(dataDir, NO_LOG);
    scope.after(() => engine.close());
    return engine;
  };
  return {
    engine: await open(folder),
    openAfterKill: async () => {
      const copy = join(temporaryFolder(), 'copy');
      await cp(folder, copy, { recursive: true });
      return open(copy);
    },
    reopen: () => open(folder),
  };
});
