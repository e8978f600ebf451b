// Opens the job store in a folder and prints why it is refused; nothing where it opens.
import { AppError } from '#errors/app-error.ts';
import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';

try {
  await (await openSqlite(process.argv[2] ?? '')).close();
} catch (error) {
  if (!(error instanceof AppError)) throw error;
  console.log(error.reason);
}
