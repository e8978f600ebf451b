import { createHash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { sql } from 'kysely';
import { pause } from '#concurrency/retry.ts';
import type { Config } from '#config/config.ts';
import { DEFAULT_IDENTITY, defaultIdentityOf } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import type { Log } from '#telemetry/logger.ts';
import type { OtherNode } from '#telemetry/metrics.ts';
import { POSTGRES_NOW_MS } from '../store/dialect.ts';
import { ADVISORY_LOCKS, type PostgresDatabase } from '../store/postgres/postgres-database.ts';
import type { Database } from '../store/tables.ts';

/** The interval of heartbeats, in milliseconds. */
const HEARTBEAT_INTERVAL_MS = 2_000;

/** The time after its last heartbeat for which a node counts as alive, in milliseconds. */
const EXPIRY_MS = 10_000;

/** The time for which a lost node is told of, in milliseconds; one that starts removes the records of all lost ones before. */
const LOST_KEPT_MS = 60 * 60_000;

/** The interval of looking whether a node with other settings is alive, in milliseconds, and the bound on looking. */
const LOOK_INTERVAL_MS = 500;
const MAX_LOOKS = (3 * EXPIRY_MS) / LOOK_INTERVAL_MS;

/** Settings that nodes compare when they start. */
interface NodeSettings {
  /** Roots of outputs by their configuration keys. */
  readonly outputRoots: Readonly<Record<string, string>>;
  /** The default identity, for nodes of releases that have one; null on nodes that do not sign, or cannot use it. */
  readonly identity: NodeIdentity | null;
  /** The identities that the node can use, by name; absent on nodes of releases that have one. */
  readonly identities?: Readonly<Record<string, NodeIdentity>>;
}

/** A signing identity of a node. */
interface NodeIdentity {
  readonly subject: string;
  readonly certificateSha256: string;
  /** As in ISO 8601; absent on nodes of releases that do not record it. */
  readonly notAfter?: string;
}

interface NamedIdentity extends NodeIdentity {
  readonly name: string;
}

/** Another node, as this one knows it. */
export interface SeenNode extends OtherNode {
  /** The identities that it can use; none of a node that was lost. */
  readonly identities: readonly NamedIdentity[];
}

/** Returns the identities that a node can use. */
function identitiesIn({ identity, identities }: NodeSettings): readonly NamedIdentity[] {
  const byName = identities ?? (identity === null ? {} : { [DEFAULT_IDENTITY]: identity });
  return Object.entries(byName).map(([name, one]) => ({ name, ...one }));
}

/** A node that shares the database. */
interface NodeRecord {
  readonly nodeId: string;
  /** Host and process, for messages. */
  readonly name: string;
  readonly settings: NodeSettings;
}

/** The record of another node, with its last heartbeat by the clock of the database. */
interface SeenRecord extends NodeRecord {
  readonly seenAtMs: number;
  /** Milliseconds since then. */
  readonly silentMs: number;
}

/** Returns the settings that all nodes must share, and the identities; those of one name should be the same. */
export function nodeSettings(
  { signing, output_sinks: { local, s3 } }: Config,
  usable: readonly IdentityDescription[] | null,
): NodeSettings {
  const identities = new Map((usable ?? []).map((identity) => [identity.name, recordOf(identity)]));
  return {
    outputRoots: {
      'output_sinks.local.base_dir': local.base_dir,
      ...(s3 !== undefined && {
        'output_sinks.s3.base_prefix': s3.base_prefix,
        // Present where it is unset: other nodes may have it. A region is no other place, because names of buckets are global.
        'output_sinks.s3.endpoint_url': s3.endpoint_url === undefined ? '' : new URL(s3.endpoint_url).href,
      }),
    },
    identity: identities.get(defaultIdentityOf({ signing })) ?? null,
    identities: Object.fromEntries(identities),
  };
}

function recordOf({ subject, certificateChain: [leaf = ''], notAfter }: IdentityDescription): NodeIdentity {
  const certificateSha256 = createHash('sha256').update(Buffer.from(leaf, 'base64')).digest('hex');
  return { subject, certificateSha256, notAfter };
}

/** The record of this node in the database, kept alive by heartbeats. */
export class NodeRegistry {
  readonly #database: PostgresDatabase;
  readonly #node: NodeRecord;
  /** Returns the settings now: an identity may be renewed. */
  readonly #settings: () => NodeSettings;
  readonly #heartbeats: NodeJS.Timeout;
  readonly #watch: NodeWatch;
  readonly #warnings: IdentityWarnings;
  #beating: Promise<void> | null = null;

  private constructor(database: PostgresDatabase, node: NodeRecord, settings: () => NodeSettings, log: Log) {
    this.#watch = new NodeWatch(log);
    this.#warnings = new IdentityWarnings(log);
    this.#database = database;
    this.#node = node;
    this.#settings = settings;
    this.#heartbeats = setInterval(() => {
      this.#beating ??= this.#beat().finally(() => {
        this.#beating = null;
      });
    }, HEARTBEAT_INTERVAL_MS).unref();
  }

  /**
   * Records this node. Throws `NODE_OUTPUTS_DIFFER` when a node is alive that has another output root: which node runs an
   * input would decide where its output goes. A node that may have been lost is watched: a heartbeat shows that it is
   * alive, and without one it expires. Throws `NODE_KNOWS_ONE_IDENTITY` in the same way. Warns of nodes that sign with other certificates under the same name.
   */
  static async join(
    database: PostgresDatabase,
    { settings, namesIdentities }: { readonly settings: () => NodeSettings; readonly namesIdentities: boolean },
    log: Log,
  ): Promise<NodeRegistry> {
    const node = { nodeId: randomUUID(), name: `${hostname()}, process ${process.pid}`, settings: settings() };
    const isUnfit = (one: NodeRecord) => differs(one, node) || (namesIdentities && knowsOneIdentity(one));
    const firstSeenAtMs = new Map<string, number>();
    for (let looks = 1; ; looks += 1) {
      const { others, unfit } = await database.transaction((db) => registerNode(db, node, isUnfit));
      if (unfit.length === 0) {
        const registry = new NodeRegistry(database, node, settings, log);
        registry.#saw(node, others);
        return registry;
      }
      for (const one of unfit) {
        const first = firstSeenAtMs.get(one.nodeId) ?? one.seenAtMs;
        firstSeenAtMs.set(one.nodeId, first);
        if (one.seenAtMs > first || looks === MAX_LOOKS) throw refusal(one, node);
      }
      await pause(LOOK_INTERVAL_MS);
    }
  }

  /** The other nodes, as the last heartbeat saw them; null while the database cannot be reached. */
  get others(): readonly SeenNode[] | null {
    return this.#watch.others;
  }

  /** Deletes the record, so that nodes with other settings may start. */
  async leave(): Promise<void> {
    clearInterval(this.#heartbeats);
    await this.#beating;
    const remove = (db: Database) => db.deleteFrom('nodes').where('node_id', '=', this.#node.nodeId).execute();
    // If the database cannot be reached, the record expires.
    await this.#database.transaction(remove).catch(() => undefined);
  }

  async #beat(): Promise<void> {
    // The heartbeats that renew leases are logged when they fail.
    const node = { ...this.#node, settings: this.#settings() };
    await this.#database
      .transaction(async (db) => {
        await recordHeartbeat(db, node);
        return otherNodes(db, node, LOST_KEPT_MS);
      })
      .then(
        (others) => this.#saw(node, others),
        () => undefined,
      );
  }

  #saw(node: NodeRecord, others: readonly SeenRecord[]): void {
    this.#watch.saw(others);
    this.#warnings.compare(node, this.#watch.others ?? []);
  }
}

/**
 * Records a node that starts, unless another one is alive that is unfit. Deletes the records of lost nodes. Of nodes that start at
 * the same time each sees those before it.
 */
async function registerNode(db: Database, node: NodeRecord, isUnfit: (other: NodeRecord) => boolean) {
  await sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.nodeRegistration})`.execute(db);
  await db.deleteFrom('nodes').where('seen_at_ms', '<', sql<number>`${POSTGRES_NOW_MS} - ${EXPIRY_MS}`).execute();
  const others = await otherNodes(db, node, EXPIRY_MS);
  const unfit = others.filter(isUnfit);
  if (unfit.length === 0) await recordHeartbeat(db, node);
  return { others, unfit };
}

/** Returns the other nodes that were seen within `expiryMs`. */
async function otherNodes(
  db: Database,
  { nodeId: ownId }: Pick<NodeRecord, 'nodeId'>,
  expiryMs: number,
): Promise<readonly SeenRecord[]> {
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
async function recordHeartbeat(db: Database, { nodeId, name, settings }: NodeRecord): Promise<void> {
  const seen = { settings: JSON.stringify(settings), seen_at_ms: POSTGRES_NOW_MS };
  await db
    .insertInto('nodes')
    .values({ node_id: nodeId, name, ...seen })
    .onConflict((row) => row.column('node_id').doUpdateSet(seen))
    .execute();
}

interface RootDifference {
  readonly key: string;
  readonly here: string;
  readonly there: string;
}

/** Compares the roots that both nodes have: one may have no S3, or be of another release. */
function differencesOf(other: NodeRecord, { settings: { outputRoots } }: NodeRecord): RootDifference[] {
  return Object.entries(outputRoots).flatMap(([key, here]) => {
    const there = other.settings.outputRoots[key];
    return there === undefined || there === here ? [] : [{ key, here, there }];
  });
}

function differs(other: NodeRecord, node: NodeRecord): boolean {
  return differencesOf(other, node).length > 0;
}

/** Tells whether a node is of a release that leases inputs of any identity, and signs them with its own. */
function knowsOneIdentity({ settings: { identity, identities } }: NodeRecord): boolean {
  return identities === undefined && identity !== null;
}

function refusal(other: NodeRecord, node: NodeRecord): AppError {
  if (!differs(other, node)) return new AppError('NODE_KNOWS_ONE_IDENTITY', { node: other.name });
  return new AppError('NODE_OUTPUTS_DIFFER', { node: other.name, differences: differencesOf(other, node) });
}

/** Warns of nodes that sign with other certificates under the same name, once for each. */
class IdentityWarnings {
  readonly #log: Log;
  readonly #warned = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  compare({ settings }: NodeRecord, others: readonly SeenNode[]): void {
    for (const own of identitiesIn(settings)) {
      const differing = others.flatMap(({ name: node, identities }) =>
        identities
          .filter((one) => one.name === own.name && one.certificateSha256 !== own.certificateSha256)
          .map(({ name: _, ...one }) => ({ node, ...one }))
          .filter((one) => this.#isNew(`${own.name} ${own.certificateSha256} ${one.certificateSha256} ${node}`)),
      );
      if (differing.length === 0) continue;
      const { name, ...identity } = own;
      this.#log.warn({ name, identity, others: differing }, 'nodes sign with different certificates under one name');
    }
  }

  #isNew(difference: string): boolean {
    return !this.#warned.has(difference) && this.#warned.add(difference) !== undefined;
  }
}

/**
 * Watches the heartbeats of the other nodes, and warns once of each that stops without having stopped in order. After this node
 * could not reach the database, none counts as lost until all have had the time to write a heartbeat again.
 */
export class NodeWatch {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #lost = new Set<string>();
  #others: readonly SeenNode[] = [];
  #sawAtMs: number;
  #judgesFromMs: number;

  /** `now`: milliseconds by a monotonic clock. */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
    this.#sawAtMs = now();
    this.#judgesFromMs = now() + EXPIRY_MS;
  }

  /** The other nodes; null where their heartbeats could not be read for `EXPIRY_MS`. */
  get others(): readonly SeenNode[] | null {
    return this.#now() - this.#sawAtMs > EXPIRY_MS ? null : this.#others;
  }

  /** Takes what a heartbeat of this node saw of the others. */
  saw(seen: readonly SeenRecord[]): void {
    const nowMs = this.#now();
    if (nowMs - this.#sawAtMs > EXPIRY_MS / 2) this.#judgesFromMs = nowMs + EXPIRY_MS;
    this.#sawAtMs = nowMs;
    const mayJudge = nowMs >= this.#judgesFromMs;
    this.#others = seen.map(({ nodeId, name, settings, seenAtMs, silentMs }) => {
      const isAlive = silentMs <= EXPIRY_MS || (!mayJudge && !this.#lost.has(nodeId));
      return { name, seenAtMs, isAlive, identities: isAlive ? identitiesIn(settings) : [] };
    });
    for (const node of seen) this.#tell(node, mayJudge);
    for (const nodeId of this.#lost) if (!seen.some((node) => node.nodeId === nodeId)) this.#lost.delete(nodeId);
  }

  #tell({ nodeId, name, seenAtMs, silentMs }: SeenRecord, mayJudge: boolean): void {
    if (silentMs <= EXPIRY_MS) {
      if (this.#lost.delete(nodeId)) this.#log.info({ node: name }, 'a node that seemed lost is back');
    } else if (mayJudge && !this.#lost.has(nodeId)) {
      this.#lost.add(nodeId);
      const fields = { node: name, seen_at: new Date(seenAtMs).toISOString() };
      this.#log.warn(fields, 'a node was lost: its heartbeat stopped, and others run its inputs');
    }
  }
}
