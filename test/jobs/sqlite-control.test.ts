import type { TestContext } from 'node:test';
import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';
import { temporaryFolder } from '../support/jobs/test-jobs.ts';
import { describeJobControl } from './control-contract.ts';
import { describeRecognition } from './recognition-contract.ts';
import { describeRetries } from './retry-contract.ts';

const databaseFor = async (t: TestContext) => {
  const folder = await temporaryFolder(t);
  return () => openSqlite(folder);
};

describeJobControl('SQLite', databaseFor);
describeRecognition('SQLite', databaseFor);
describeRetries('SQLite', databaseFor);
