import type { Client } from 'pg';
import { AppError } from '#errors/app-error.ts';
import { databaseError } from './database-error.ts';
import { clientConfig } from './postgres-pool.ts';

/** What PgBouncer says to a transaction where it pools by statement. */
const POOLED_BY_STATEMENT = /statement pooling/i;

/** Others who use the pooler may get in between: what shows in one look shows in most. */
const LOOKS = 5;

/**
 * Refuses a pooler that gives a server's session to another client after every transaction, as PgBouncer does with
 * pool_mode = transaction: what is listened to there is heard by nobody, and settings go to whoever comes next. Looks on
 * connections of its own, which change nothing that others could get.
 */
export async function refusePooler(url: string, place: string): Promise<void> {
  const { default: pg } = await import('pg');
  const clients: [Client, Client] = [new pg.Client(clientConfig(url)), new pg.Client(clientConfig(url))];
  try {
    for (const client of clients) {
      // A loss shows in the next query.
      client.on('error', () => undefined);
      await client.connect();
    }
    if (await shareSession(...clients)) throw new AppError('DATABASE_POOLED', { place });
  } catch (error) {
    const isPooled = error instanceof Error && POOLED_BY_STATEMENT.test(error.message);
    throw isPooled ? new AppError('DATABASE_POOLED', { place }, { cause: error }) : databaseError(place, error);
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()));
  }
}

/** Whether two connections that are both open get to the same session of the server, or one of them to several. */
async function shareSession(first: Client, second: Client): Promise<boolean> {
  for (let look = 0; look < LOOKS; look += 1) {
    const before = await sessionOf(first);
    await second.query('begin');
    const others = await sessionOf(second);
    const isTaken = others === before;
    // Where it is taken, the first one would wait until it is free.
    const after = isTaken ? before : await sessionOf(first);
    await second.query('rollback');
    if (isTaken || after !== before) return true;
  }
  return false;
}

/** The process of the server that a connection is served by. */
async function sessionOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
}
