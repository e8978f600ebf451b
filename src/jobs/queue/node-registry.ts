import { createHash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { pause } from '#concurrency/retry.ts';
import type { Config } from '#config/config.ts';
import { defaultIdentityOf } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import type { Log } from '#telemetry/logger.ts';
import type { OtherNode } from '#telemetry/metrics.ts';
import {
  identitiesIn,
  type NamedIdentity,
  type NodeIdentity,
  type NodeRecord,
  type NodeSettings,
  otherNodes,
  recordHeartbeat,
  registerNode,
  removeNode,
  type SeenNode,
} from '../store/postgres/node-records.ts';
import type { PostgresDatabase } from '../store/postgres/postgres-database.ts';

/** The interval of heartbeats, in milliseconds. */
const HEARTBEAT_INTERVAL_MS = 2_000;

/** The time after its last heartbeat for which a node counts as alive, in milliseconds. */
const EXPIRY_MS = 10_000;

/** The time for which a lost node is told of, in milliseconds; one that starts removes the records of all lost ones before. */
const LOST_KEPT_MS = 60 * 60_000;

/** The interval of looking whether a node with other settings is alive, in milliseconds, and the bound on looking. */
const LOOK_INTERVAL_MS = 500;
const MAX_LOOKS = (3 * EXPIRY_MS) / LOOK_INTERVAL_MS;

/** Returns the settings that all nodes must share, and the identities; those of one name should be the same. */
export function nodeSettings(
  { signing, output_sinks: { local, s3 } }: Config,
  usable: readonly IdentityDescription[] | null,
): NodeSettings {
  const identities = Object.fromEntries((usable ?? []).map((identity) => [identity.name, recordOf(identity)]));
  return {
    outputRoots: {
      'output_sinks.local.base_dir': local.base_dir,
      ...(s3 !== undefined && {
        'output_sinks.s3.base_prefix': s3.base_prefix,
        // Present where it is unset: other nodes may have it. A region is no other place, because names of buckets are global.
        'output_sinks.s3.endpoint_url': s3.endpoint_url === undefined ? '' : new URL(s3.endpoint_url).href,
      }),
    },
    identity: identities[defaultIdentityOf({ signing })] ?? null,
    identities,
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
      const mayJoin = (found: readonly SeenNode[]) => !found.some(isUnfit);
      const others = await database.transaction((db) => registerNode(db, node, EXPIRY_MS, mayJoin));
      const differing = others.filter(isUnfit);
      if (differing.length === 0) {
        const registry = new NodeRegistry(database, node, settings, log);
        registry.#warnings.compare(node, others);
        return registry;
      }
      for (const one of differing) {
        const first = firstSeenAtMs.get(one.nodeId) ?? one.seenAtMs;
        firstSeenAtMs.set(one.nodeId, first);
        if (one.seenAtMs > first || looks === MAX_LOOKS) throw refusal(one, node);
      }
      await pause(LOOK_INTERVAL_MS);
    }
  }

  /** Returns the identities that the other living nodes can use. */
  async otherIdentities(): Promise<readonly NamedIdentity[]> {
    const others = await this.#database.transaction((db) => otherNodes(db, this.#node, EXPIRY_MS));
    return others.flatMap(({ settings }) => identitiesIn(settings));
  }

  /** The other nodes, as the last heartbeat saw them; null while the database cannot be reached. */
  get others(): readonly OtherNode[] | null {
    return this.#watch.others;
  }

  /** Deletes the record, so that nodes with other settings may start. */
  async leave(): Promise<void> {
    clearInterval(this.#heartbeats);
    await this.#beating;
    // If the database cannot be reached, the record expires.
    await this.#database.transaction((db) => removeNode(db, this.#node)).catch(() => undefined);
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
        (others) => {
          this.#watch.saw(others);
          this.#warnings.compare(node, others);
        },
        () => undefined,
      );
  }
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
      const differing = others.flatMap(({ name: node, silentMs, settings: theirs }) =>
        identitiesIn(theirs)
          .filter((one) => one.name === own.name && one.certificateSha256 !== own.certificateSha256)
          .map(({ name: _, ...one }) => ({ node, ...one }))
          .filter(({ certificateSha256 }) => {
            const difference = `${own.name} ${own.certificateSha256} ${certificateSha256} ${node}`;
            return silentMs < EXPIRY_MS && this.#isNew(difference);
          }),
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
  #others: readonly OtherNode[] = [];
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
  get others(): readonly OtherNode[] | null {
    return this.#now() - this.#sawAtMs > EXPIRY_MS ? null : this.#others;
  }

  /** Takes what a heartbeat of this node saw of the others. */
  saw(seen: readonly SeenNode[]): void {
    const nowMs = this.#now();
    if (nowMs - this.#sawAtMs > EXPIRY_MS / 2) this.#judgesFromMs = nowMs + EXPIRY_MS;
    this.#sawAtMs = nowMs;
    const mayJudge = nowMs >= this.#judgesFromMs;
    this.#others = seen.map((node) => ({
      name: node.name,
      seenAtMs: node.seenAtMs,
      isAlive: node.silentMs <= EXPIRY_MS || (!mayJudge && !this.#lost.has(node.nodeId)),
    }));
    for (const node of seen) this.#tell(node, mayJudge);
    for (const nodeId of this.#lost) if (!seen.some((node) => node.nodeId === nodeId)) this.#lost.delete(nodeId);
  }

  #tell({ nodeId, name, seenAtMs, silentMs }: SeenNode, mayJudge: boolean): void {
    if (silentMs <= EXPIRY_MS) {
      if (this.#lost.delete(nodeId)) this.#log.info({ node: name }, 'a node that seemed lost is back');
    } else if (mayJudge && !this.#lost.has(nodeId)) {
      this.#lost.add(nodeId);
      const fields = { node: name, seen_at: new Date(seenAtMs).toISOString() };
      this.#log.warn(fields, 'a node was lost: its heartbeat stopped, and others run its inputs');
    }
  }
}
