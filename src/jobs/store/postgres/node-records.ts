import { sql } from 'kysely';
import { POSTGRES_NOW_MS } from '../dialect.ts';
import type { Database } from '../tables.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';

/** Settings that nodes compare when they start. */
export interface NodeSettings {
  /** Roots of outputs by their configuration keys. */
  readonly outputRoots: Readonly<Record<string, string>>;
  /** Signing identity; null on nodes that do not sign. */
  readonly identity: { readonly subject: string; readonly certificateSha256: string } | null;
}

/** A node that shares the database. */
export interface NodeRecord {
  readonly nodeId: string;
  /** Host and process, for messages. */
  readonly name: string;
  readonly settings: NodeSettings;
}

/** Another node, with its last heartbeat by the clock of the database. */
export interface SeenNode extends NodeRecord {
  readonly seenAtMs: number;
}

/**
 * Records a node that starts, unless `mayJoin` refuses. Returns the other nodes that were seen within `expiryMs`, and
 * deletes the records of older ones. Of nodes that start at the same time each sees those before it.
 */
export async function registerNode(
  db: Database,
  node: NodeRecord,
  expiryMs: number,
  mayJoin: (others: readonly SeenNode[]) => boolean,
): Promise<readonly SeenNode[]> {
  await sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.nodeRegistration})`.execute(db);
  await db.deleteFrom('nodes').where('seen_at_ms', '<', sql<number>`${POSTGRES_NOW_MS} - ${expiryMs}`).execute();
  const rows = await db.selectFrom('nodes').selectAll().where('node_id', '!=', node.nodeId).execute();
  const others = rows.map(({ node_id: nodeId, name, settings, seen_at_ms: seenAtMs }) => ({
    nodeId,
    name,
    settings: JSON.parse(settings) as NodeSettings,
    seenAtMs,
  }));
  if (mayJoin(others)) await recordHeartbeat(db, node);
  return others;
}

/** Records that a node is alive, also when its record was deleted because it could not reach the database. */
export async function recordHeartbeat(db: Database, { nodeId, name, settings }: NodeRecord): Promise<void> {
  await db
    .insertInto('nodes')
    .values({ node_id: nodeId, name, settings: JSON.stringify(settings), seen_at_ms: POSTGRES_NOW_MS })
    .onConflict((row) => row.column('node_id').doUpdateSet({ seen_at_ms: POSTGRES_NOW_MS }))
    .execute();
}

/** Deletes the record of a node that stops. */
export async function removeNode(db: Database, { nodeId }: Pick<NodeRecord, 'nodeId'>): Promise<void> {
  await db.deleteFrom('nodes').where('node_id', '=', nodeId).execute();
}
