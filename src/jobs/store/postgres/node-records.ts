import { sql } from 'kysely';
import { DEFAULT_IDENTITY } from '#config/identities.ts';
import { POSTGRES_NOW_MS } from '../dialect.ts';
import type { Database } from '../tables.ts';
import { ADVISORY_LOCKS } from './postgres-database.ts';

/** Settings that nodes compare when they start. */
export interface NodeSettings {
  /** Roots of outputs by their configuration keys. */
  readonly outputRoots: Readonly<Record<string, string>>;
  /** The default identity, for nodes of releases that have one; null on nodes that do not sign, or cannot use it. */
  readonly identity: NodeIdentity | null;
  /** The identities that the node can use, by name; absent on nodes of releases that have one. */
  readonly identities?: Readonly<Record<string, NodeIdentity>>;
}

/** A signing identity of a node. */
export interface NodeIdentity {
  readonly subject: string;
  readonly certificateSha256: string;
  /** As in ISO 8601; absent on nodes of releases that do not record it. */
  readonly notAfter?: string;
}

export interface NamedIdentity extends NodeIdentity {
  readonly name: string;
}

/** Returns the identities that a node can use. */
export function identitiesIn({ identity, identities }: NodeSettings): readonly NamedIdentity[] {
  const byName = identities ?? (identity === null ? {} : { [DEFAULT_IDENTITY]: identity });
  return Object.entries(byName).map(([name, one]) => ({ name, ...one }));
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
  /** Milliseconds since then. */
  readonly silentMs: number;
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
  const others = await otherNodes(db, node, expiryMs);
  if (mayJoin(others)) await recordHeartbeat(db, node);
  return others;
}

/** Returns the other nodes that were seen within `expiryMs`. */
export async function otherNodes(
  db: Database,
  { nodeId: ownId }: Pick<NodeRecord, 'nodeId'>,
  expiryMs: number,
): Promise<readonly SeenNode[]> {
  const rows = await db
    .selectFrom('nodes')
    .selectAll()
    .select(sql<number>`${POSTGRES_NOW_MS} - seen_at_ms`.as('silent_ms'))
    .where('node_id', '!=', ownId)
    .where('seen_at_ms', '>=', sql<number>`${POSTGRES_NOW_MS} - ${expiryMs}`)
    .execute();
  return rows.map(({ node_id: nodeId, name, settings, seen_at_ms: seenAtMs, silent_ms: silentMs }) => ({
    nodeId,
    name,
    settings: JSON.parse(settings) as NodeSettings,
    seenAtMs,
    silentMs,
  }));
}

/**
 * Records that a node is alive, with its settings as they are now: also when its record was deleted because it could not reach the
 * database.
 */
export async function recordHeartbeat(db: Database, { nodeId, name, settings }: NodeRecord): Promise<void> {
  const seen = { settings: JSON.stringify(settings), seen_at_ms: POSTGRES_NOW_MS };
  await db
    .insertInto('nodes')
    .values({ node_id: nodeId, name, ...seen })
    .onConflict((row) => row.column('node_id').doUpdateSet(seen))
    .execute();
}

/** Deletes the record of a node that stops. */
export async function removeNode(db: Database, { nodeId }: Pick<NodeRecord, 'nodeId'>): Promise<void> {
  await db.deleteFrom('nodes').where('node_id', '=', nodeId).execute();
}
