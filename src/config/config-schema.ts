import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { identityName } from '#contract/request.ts';
import { isBucketName, isNetwork, LINK_LOCAL_AND_METADATA, parseBindAddress } from './addresses.ts';
import { callerName, path, signing, timeoutMs, url } from './signing-schema.ts';

const SHA256 = /^[0-9a-fA-F]{64}$/;
const SHA256_PREFIX = 'sha256:';

const token = z
  .string()
  .refine((value) => /^[\x21-\x7e]{1,4096}$/.test(value), 'must be printable ASCII without spaces')
  .refine(
    (value) => !value.startsWith(SHA256_PREFIX) || SHA256.test(value.slice(SHA256_PREFIX.length)),
    'must have 64 hexadecimal digits after "sha256:"',
  );

const callerTable = z
  .strictObject({
    name: callerName,
    token: token.exactOptional(),
    sha256: z.string().regex(SHA256, 'must have 64 hexadecimal digits').exactOptional(),
    admin: z.boolean().default(false),
  })
  .refine((table) => (table.token === undefined) !== (table.sha256 === undefined), {
    error: 'must have either token or sha256',
  });

/** A bearer token and the caller that it stands for. The token itself is kept nowhere. */
interface CallerToken {
  /** The SHA-256 of the token, in hexadecimal. */
  readonly digest: string;
  /** The name that jobs are recorded under. Several tokens of one name are one caller, so that they can be rotated. */
  readonly caller: string;
  /** Sees and controls the jobs of all callers. */
  readonly admin: boolean;
}

/** An entry of `auth.tokens`: a token, `sha256:` and its digest, or a table that names the caller. */
const callerToken = z.custom<unknown>().transform((entry, context): CallerToken | typeof z.NEVER => {
  const result =
    typeof entry === 'string' ? token.safeParse(entry) : callerTable.safeParse(entry, { reportInput: true });
  if (result.success) return asCallerToken(result.data);
  for (const issue of result.error.issues) context.issues.push(issue as never);
  return z.NEVER;
});

/** The bearer tokens that are accepted. One token stands for one caller. */
const callerTokens = z.array(callerToken).superRefine((tokens, context) => {
  tokens.forEach(({ digest, caller, admin }, index) => {
    if (KNOWN_DIGESTS.includes(digest)) context.addIssue({ code: 'custom', path: [index], message: KNOWN_TOKEN });
    const first = tokens.findIndex((other) => other.digest === digest);
    const same = tokens[first];
    if (same === undefined || (same.caller === caller && same.admin === admin)) return;
    context.addIssue({
      code: 'custom',
      path: [index],
      message: `is the token of entry ${first} too, as another caller`,
    });
  });
});

/** Digests of "foo" and "bar", which the example of docs/production.md had: whoever copied it has tokens that all know. */
const KNOWN_DIGESTS = ['foo', 'bar'].map(sha256);
const KNOWN_TOKEN =
  'is a token from an example, which everybody knows: make one of your own, such as with "openssl rand -hex 32"';

function asCallerToken(entry: z.output<typeof callerTable> | string): CallerToken {
  if (typeof entry !== 'string') {
    const digest = entry.sha256?.toLowerCase() ?? digestOf(entry.token ?? '');
    return { digest, caller: entry.name, admin: entry.admin };
  }
  const digest = digestOf(entry);
  return { digest, caller: unnamedCaller(digest), admin: false };
}

function digestOf(given: string): string {
  return given.startsWith(SHA256_PREFIX) ? given.slice(SHA256_PREFIX.length).toLowerCase() : sha256(given);
}

/** Names the caller of a token without a name: the same at every start and on every node, and of no use to guess a good token. */
function unnamedCaller(digest: string): string {
  return `token-${sha256(digest).slice(0, 8)}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const MIB_BYTES = 1024 ** 2;
const TIB_BYTES = 1024 ** 4;
const MAX_COUNT = 10_000_000;
const MAX_BUDGET_SECONDS = 366 * 24 * 60 * 60;
const MAX_PARALLEL = 1024;
const MAX_RETENTION_HOURS = 10 * 366 * 24;

const count = z.int().min(1).max(MAX_COUNT);

const bindAddress = z
  .string()
  .refine((value) => parseBindAddress(value) !== null, 'must be an address and a port, such as 127.0.0.1:8080');

/** A host name as people write it; `guardHosts` compares it in ASCII. */
const hostName = z
  .string()
  .refine(
    (value) => /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$/.test(domainToASCII(value)),
    'must be a host name such as media.example.com, without scheme, port and path',
  );

const server = z.strictObject({
  bind_addr: bindAddress.default('0.0.0.0:8080'),
  sync_timeout_ms: timeoutMs.default(120_000),
  sync_poll_interval_ms: timeoutMs.default(250),
  max_upload_bytes: z
    .int()
    .min(1024)
    .max(1024 * MIB_BYTES)
    .default(8 * MIB_BYTES),
  docs: z.boolean().default(true),
  allowed_hosts: z.array(hostName).default([]),
});

/** The rights of a caller; callers that are not named here may sign with every identity. */
const callerRights = z.strictObject({
  /** The first is the default. */
  identities: z.array(identityName).min(1, 'must name at least one identity'),
});

const auth = z.strictObject({
  tokens: callerTokens.default([]),
  callers: z.record(callerName, callerRights).default({}),
});

const databaseUrl = z
  .string()
  .refine(
    (value) => URL.canParse(value) && /^postgres(ql)?:$/.test(new URL(value).protocol),
    'must be a URL such as postgres://user@host:5432/database, with special characters in the password percent-encoded',
  );

/** A year. */
const MAX_OUTAGE_HOURS = 8_760;

const jobs = z
  .strictObject({
    data_dir: path.default('./.artifacts/data'),
    scratch_dir: path.exactOptional(),
    database_url: databaseUrl.exactOptional(),
    role: z.enum(['all', 'api', 'worker']).default('all'),
    retention_hours: z.int().min(1).max(MAX_RETENTION_HOURS).default(168),
    outage_hours: z.int().min(0).max(MAX_OUTAGE_HOURS).default(24),
  })
  .refine(({ role, database_url: databaseUrl }) => role === 'all' || databaseUrl !== undefined, {
    error: 'needs jobs.database_url: nodes with different roles share one PostgreSQL database; or leave it at "all"',
    path: ['role'],
  });

/** The budgets of one input; `src/workers/input-budgets.ts` computes its limits from these and its size. */
const budgets = z.strictObject({
  cpu_seconds_base: z.int().min(1).max(MAX_BUDGET_SECONDS).default(30),
  cpu_seconds_per_gib: z.int().min(0).max(MAX_BUDGET_SECONDS).default(128),
  phase_seconds_base: z.int().min(1).max(MAX_BUDGET_SECONDS).default(900),
  phase_seconds_per_gib: z.int().min(0).max(MAX_BUDGET_SECONDS).default(2048),
  memory_bytes: z
    .int()
    .min(256 * MIB_BYTES)
    .max(TIB_BYTES)
    .default(2048 * MIB_BYTES),
  output_bytes_base: z
    .int()
    .min(MIB_BYTES)
    .max(Number.MAX_SAFE_INTEGER)
    .default(1024 * MIB_BYTES),
  output_factor: z.int().min(1).max(1000).default(8),
  open_files: z.int().min(256).max(1_048_576).default(4096),
});

const worker = z.strictObject({
  queue_capacity: count.default(100_000),
  max_inputs_per_job: count.default(10_000),
  max_concurrent_batches: z.int().min(1).max(MAX_PARALLEL).default(64),
  default_max_files_parallel: z
    .int()
    .min(1)
    .max(MAX_PARALLEL)
    .default(() => availableParallelism()),
  budgets: budgets.prefault({}),
  sandbox: z.enum(['auto', 'off', 'require']).default('auto'),
});

/** Files of the operator that verification uses. */
const trust = z.strictObject({
  anchors: z.array(path).default([]),
  tsa_anchors: z.array(path).default([]),
  publisher_anchors: z.array(path).default([]),
  allowed: z.array(path).default([]),
  rubrics_dir: path.exactOptional(),
});

/** The access to S3. Credentials come from the standard AWS chain and never stand in the configuration. */
const s3Access = {
  profile: z.string().min(1, 'must not be empty').exactOptional(),
  region: z.string().min(1, 'must not be empty').exactOptional(),
  endpoint_url: url.exactOptional(),
  force_path_style: z.boolean().default(false),
};

const bucket = z
  .string()
  .refine(
    isBucketName,
    'must be the name of a bucket, which has at least three characters, without "s3://" and slashes',
  );
const buckets = z.array(bucket).min(1, 'must name at least one bucket');

/** The prefix of the keys of all outputs, such as `signed/2026`; slashes around it are removed. */
const basePrefix = z
  .string()
  .transform((value) => value.replace(/^\/+|\/+$/g, ''))
  .refine(
    (value) => value === '' || value.split('/').every((segment) => !/^\.{0,2}$|[\p{Cc}\\]/u.test(segment)),
    'must be names joined by "/", without "..", control characters or backslashes',
  )
  .default('');

const naming = z.enum(['derived', 'in_place']).default('derived');

const network = z.string().refine(isNetwork, 'must be a network such as 10.0.0.0/8 or fd00::/8, or an address');

const inputResolvers = z.strictObject({
  max_files: count.default(100_000),
  max_bytes: z.int().min(1).max(Number.MAX_SAFE_INTEGER).default(TIB_BYTES),
  max_depth: z.int().min(1).max(256).default(16),
  local: z.strictObject({ roots: z.array(path).min(1, 'must name at least one folder').exactOptional() }).prefault({}),
  http: z
    .strictObject({
      deny_networks: z.array(network).default([...LINK_LOCAL_AND_METADATA]),
      max_bytes: z.int().min(1).max(Number.MAX_SAFE_INTEGER).default(TIB_BYTES),
      idle_timeout_ms: timeoutMs.default(30_000),
    })
    .prefault({}),
  s3: z.strictObject({ ...s3Access, buckets: buckets.exactOptional() }).exactOptional(),
});

const outputSinks = z.strictObject({
  local: z
    .strictObject({
      base_dir: path.default('./.artifacts/output'),
      naming,
    })
    .prefault({}),
  s3: z.strictObject({ ...s3Access, buckets, base_prefix: basePrefix, naming }).exactOptional(),
});

/** The key of an HMAC-SHA256: shorter ones can be guessed from one signed callback. */
const callbacks = z.strictObject({ secret: z.string().min(16, 'must have at least 16 characters').exactOptional() });

const telemetry = z.strictObject({ otlp_endpoint: url.exactOptional() });

/** Every key of the configuration with its type, bounds and default. */
export const configSchema = z
  .strictObject({
    server: server.prefault({}),
    auth: auth.prefault({}),
    jobs: jobs.prefault({}),
    worker: worker.prefault({}),
    signing: signing.prefault({}),
    trust: trust.prefault({}),
    input_resolvers: inputResolvers.prefault({}),
    output_sinks: outputSinks.prefault({}),
    callbacks: callbacks.prefault({}),
    telemetry: telemetry.prefault({}),
  })
  .refine(({ jobs, signing }) => jobs.database_url === undefined || isIdentityConfigured(signing), {
    error:
      'needs a configured signing identity, so that all nodes sign as one: set signing.certificate_path and signing.private_key_path, or signing.identities',
    path: ['jobs', 'database_url'],
  })
  .superRefine(({ auth, signing }, context) => {
    const names = identityNames(signing);
    for (const [caller, { identities }] of Object.entries(auth.callers)) {
      const unknown = identities.filter((name) => !names.includes(name));
      if (unknown.length === 0) continue;
      const message = `names ${unknown.join(', ')}, which no section of signing.identities configures`;
      context.addIssue({ code: 'custom', path: ['auth', 'callers', caller, 'identities'], message });
    }
  });

type Signing = z.output<typeof signing>;

function isIdentityConfigured(given: Signing): boolean {
  return given.certificate_path !== undefined || Object.keys(given.identities).length > 0;
}

function identityNames({ identities }: Signing): string[] {
  const names = Object.keys(identities);
  return names.length === 0 ? ['default'] : names;
}

/** The JSON schema of one key, as far as it tells types and bounds. */
export interface KeySchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly KeySchema[];
  readonly oneOf?: readonly KeySchema[];
  readonly properties?: Readonly<Record<string, KeySchema>>;
  /** The schema of each table in a record, whose names are the operator's. */
  readonly additionalProperties?: KeySchema | boolean;
}

/** The keys with tables whose names are the operator's. */
export const RECORDS = ['signing.identities', 'auth.callers'] as const;

/** Returns the schema of a name in a table, or in one of several; undefined where it has none. */
export function schemaOf(
  name: string,
  { properties = {}, additionalProperties, oneOf = [] }: KeySchema,
): KeySchema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name];
  if (typeof additionalProperties === 'object') return additionalProperties;
  for (const each of oneOf) {
    const found = schemaOf(name, each);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the JSON schema of the configuration, section by section. */
export function keySchemas(): KeySchema {
  return z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as KeySchema;
}

/** Returns every key as a dotted path, and every section. The names in records are those of `like`, a path of the operator's. */
export function keyPaths(
  like: readonly string[] = [],
  { properties = {}, additionalProperties, oneOf = [] }: KeySchema = keySchemas(),
  path: readonly string[] = [],
): readonly string[] {
  const named = typeof additionalProperties === 'object' ? { [like[path.length] ?? 'name']: additionalProperties } : {};
  const inner = Object.entries({ ...properties, ...named }).flatMap(([name, schema]) => {
    const own = [...path, name];
    return [own.join('.'), ...keyPaths(like, schema, own)];
  });
  return [...inner, ...oneOf.flatMap((each) => keyPaths(like, each, path))];
}
