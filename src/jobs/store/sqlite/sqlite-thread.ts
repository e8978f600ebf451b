/**
 * The thread that SQLite runs on, and the actions of the store with it. node:sqlite is synchronous, and a sync of the
 * disk can stall for seconds on a busy machine: here it stalls this thread only.
 */
import assert from 'node:assert/strict';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { bringUpToDate } from '../migrate.ts';
import type { Database } from '../tables.ts';
import { failureOf } from './action-failure.ts';
import { ActionLoop } from './action-loop.ts';
import { openDatabase } from './sqlite-database.ts';
import type { FromSqliteThread, SqliteThreadData, ToSqliteThread } from './sqlite-messages.ts';

assert(parentPort !== null, 'this module runs on a thread of its own');
await runThread(parentPort, (workerData as SqliteThreadData).file);

async function runThread(port: MessagePort, file: string): Promise<void> {
  const tell = (message: FromSqliteThread) => port.postMessage(message);
  let db: Database | undefined;
  try {
    db = openDatabase(file);
    await bringUpToDate(db, file);
    const loop = new ActionLoop(port, db);
    port.on('message', (message: ToSqliteThread) => loop.take(message));
    tell({ type: 'opened' });
  } catch (error) {
    await db?.destroy();
    tell({ type: 'refused', failure: failureOf(error) });
  }
}
