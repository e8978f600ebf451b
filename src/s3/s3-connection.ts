import type { AgentOptions } from 'node:http';
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import { AppError } from '#errors/app-error.ts';
import { callRecorder } from '#telemetry/run-report.ts';
import { type S3RetryBounds, s3Retry } from './sdk/s3-error.ts';

/** The AWS SDK's module. It is loaded only by processes that use S3, since it takes 35 MB and most of a second. */
type S3Sdk = typeof import('@aws-sdk/client-s3');

/** The settings of a connection: the keys that `input_resolvers.s3` and `output_sinks.s3` share. */
export interface S3Settings {
  readonly profile?: string;
  readonly region?: string;
  readonly endpoint_url?: string;
  readonly force_path_style: boolean;
  /** Smaller ones in tests. */
  readonly bounds?: Partial<S3Bounds>;
}

/** Timeouts and pauses, in milliseconds; the idle timeout is the time without a byte in either direction. */
export interface S3Bounds extends S3RetryBounds {
  readonly idleTimeoutMs: number;
}

/** A client and the module whose commands it sends. One and the same for equal settings. */
export interface S3Connection {
  readonly sdk: S3Sdk;
  readonly client: S3Client;
}

/** Time to connect, and time without a byte in either direction, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 30_000;

/** Connections of one client at most. */
const MAX_SOCKETS = 64;

/** The region for endpoints other than AWS when none is configured. */
const ANY_REGION = 'us-east-1';

const connections = new Map<string, Promise<S3Connection>>();

/** Returns the connection for settings, created at the first call. Sends nothing by itself. */
export function connectS3(settings: S3Settings): Promise<S3Connection> {
  const { profile, region, endpoint_url: endpoint, force_path_style: pathStyle, bounds } = settings;
  const key = JSON.stringify([profile, region, endpoint, pathStyle, bounds]);
  const known = connections.get(key);
  if (known !== undefined) return known;
  const connection = connect(settings);
  connections.set(key, connection);
  connection.catch(() => connections.delete(key));
  return connection;
}

async function connect(settings: S3Settings): Promise<S3Connection> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = await clientFor(sdk, settings);
  measureCalls(client);
  return { sdk, client };
}

async function clientFor(sdk: S3Sdk, settings: S3Settings): Promise<S3Client> {
  const client = new sdk.S3Client(clientConfig(settings));
  try {
    await client.config.region();
    return client;
  } catch (cause) {
    client.destroy();
    if (settings.endpoint_url === undefined) throw new AppError('S3_REGION_MISSING', {}, { cause });
    return new sdk.S3Client({ ...clientConfig(settings), region: ANY_REGION });
  }
}

function clientConfig(settings: S3Settings): S3ClientConfig {
  const { profile, region, endpoint_url: endpoint, force_path_style, bounds = {} } = settings;
  const agent: AgentOptions = { keepAlive: true, maxSockets: MAX_SOCKETS };
  return {
    ...(profile !== undefined && { profile }),
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint }),
    forcePathStyle: force_path_style,
    retryStrategy: s3Retry(bounds),
    // The signature holds the SHA-256 of a body, which every server checks. A CRC-32 beside it tells nothing more, and took
    // Ceph's gateway, which computes it byte by byte, as long as everything else about a part.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    // Ranges have no checksum to check, and asking for one costs time with every answer.
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Asked to, the SDK waits for "100 Continue" before each body, on a connection of its own that is used only once.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: bounds.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
      httpAgent: agent,
      httpsAgent: agent,
    },
  };
}

/** An object that is not there, or not as a condition wants it, is an answer. */
const ANSWERS: ReadonlySet<unknown> = new Set([304, 404, 412]);

function isAnswer(error: unknown): boolean {
  return ANSWERS.has((error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode);
}

/** Records the duration of each command until its response starts, failed attempts included: `s3 PutObject`. */
function measureCalls(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName = 'unknown' }) =>
      (args) =>
        callRecorder.measure(`s3 ${commandName.replace(/Command$/, '')}`, () => next(args), isAnswer),
    { step: 'initialize', priority: 'high', name: 'measureCalls' },
  );
}
