import { join } from 'node:path';
import { makeIdentity } from '../../bench/identity.ts';
import { type PostgresServer, startPostgres } from '../support/servers/postgres-server.ts';
import { startProxy, type UnreliableProxy } from '../support/servers/unreliable-proxy.ts';
import { type ChaosBucket, openChaosBucket } from './chaos-bucket.ts';
import { ChaosCounts } from './chaos-counts.ts';
import { type ChaosNode, nodeAt } from './chaos-node.ts';
import { type LossyDisk, openLossyDisk } from './lossy-disk.ts';

/** A caller that waits for its job waits through kills, crashes and partitions. */
const SYNC_TIMEOUT_MS = 280_000;

/** Resources that all rounds of a run share. */
export interface ChaosEnvironment {
  /** The one that is disturbed. */
  readonly node: ChaosNode;
  /** Null on the embedded engine. */
  readonly cluster: ChaosCluster | null;
  /** The folder that all nodes deliver to. */
  readonly outputs: string;
  readonly bucket: ChaosBucket | null;
  /** The disk of the disturbed node and of the outputs, where a kill is a power cut; null where it is only a kill. */
  readonly disk: LossyDisk | null;
  readonly counts: ChaosCounts;
  /** The kill points that an input came to. */
  readonly reachedPoints: Set<string>;
  /** Every output path that a result told of. */
  readonly delivered: Set<string>;
  /** Every job that was acknowledged. */
  readonly jobIds: Set<string>;
}

/** The nodes and the database beside the disturbed node. */
export interface ChaosCluster {
  readonly server: PostgresServer;
  /** Between the disturbed node and the server. */
  readonly proxy: UnreliableProxy;
  /** Takes jobs and does none. */
  readonly front: ChaosNode;
  /** Does jobs, and takes over where the disturbed node is lost. */
  readonly helper: ChaosNode;
}

/** Options of a run's environment. */
export interface EnvironmentOptions {
  readonly engine: 'embedded' | 'postgres';
  readonly withS3: boolean;
  /** Every kill takes the power of the disk along. Needs root. */
  readonly withPowerCuts?: boolean;
}

/** Makes the environment in a folder. `tearDown` is given what is to be done with it in the end, last first. */
export async function openEnvironment(
  folder: string,
  { engine, withS3, withPowerCuts = false }: EnvironmentOptions,
  tearDown: (step: () => void | Promise<void>) => void,
): Promise<ChaosEnvironment> {
  const disk = withPowerCuts ? openLossyDisk(folder) : null;
  if (disk !== null) tearDown(() => disk.close());
  const root = disk?.path ?? folder;
  const outputs = join(root, 'output');
  const bucket = withS3 ? await openChaosBucket() : null;
  if (bucket !== null) tearDown(() => bucket.close());
  const settings: Record<string, string> = {
    SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: outputs,
    SERVICE__SERVER__SYNC_TIMEOUT_MS: String(SYNC_TIMEOUT_MS),
    ...bucket?.settings,
  };
  const shared = { outputs, bucket, disk, counts: new ChaosCounts(), reachedPoints: new Set<string>() };
  const known = { delivered: new Set<string>(), jobIds: new Set<string>() };
  const nodeNamed = (name: string, more: Record<string, string> = {}) =>
    nodeAt(join(root, name), { ...settings, ...more });
  if (engine === 'embedded') return { ...shared, ...known, node: nodeNamed('disturbed'), cluster: null };
  const after = { after: tearDown };
  const identity = makeIdentity(join(folder, 'identity'));
  const server = await startPostgres(after);
  const proxy = await startProxy(after, server.address);
  const url = await server.createDatabase();
  // All nodes of a cluster sign as one.
  const signing = {
    SERVICE__SIGNING__CERTIFICATE_PATH: identity.certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: identity.keyPath,
  };
  const direct = { ...signing, SERVICE__JOBS__DATABASE_URL: url };
  const through = { ...direct, SERVICE__JOBS__DATABASE_URL: proxy.through(url) };
  const cluster = { server, proxy, front: nodeNamed('front', direct), helper: nodeNamed('helper', direct) };
  return { ...shared, ...known, node: nodeNamed('disturbed', through), cluster };
}
