import type { z } from 'zod';
import type { ShownConfig } from '#contract/service.ts';
import { type configSchema, RECORDS } from './config-schema.ts';

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** The treatment of outputs that exist: they are kept, and the new one is refused, or replaced, folders with all that is in them. */
export type ExistingOutputs = 'keep' | 'replace';

/**
 * The service's configuration, validated, with every default filled in and every path absolute. Plain data: it crosses
 * to the workers. The keys and their meaning are in `config-schema.ts` and, for people, in `config/service.toml`.
 */
export type Config = DeepReadonly<z.output<typeof configSchema>> & {
  /** Filled in by `loadConfig` from `jobs.data_dir` where it is not set. */
  readonly jobs: { readonly scratch_dir: string };
  /** Set by commands alone. */
  readonly output_sinks: { readonly local: { readonly existing?: ExistingOutputs } };
  /** Set by `withoutSecrets` alone: the files of identities, which no request reads and no output replaces. */
  readonly protected_files?: readonly string[];
};

/** Keys whose values may be shown. A key that stands neither here nor in `WITHHELD_KEYS` is not shown either. */
const SHOWN_KEYS = [
  'server.bind_addr',
  'server.sync_timeout_ms',
  'server.sync_poll_interval_ms',
  'server.max_upload_bytes',
  'server.docs',
  'server.allowed_hosts',
  'jobs.data_dir',
  'jobs.scratch_dir',
  'jobs.role',
  'jobs.retention_hours',
  'jobs.outage_hours',
  'worker.queue_capacity',
  'worker.max_inputs_per_job',
  'worker.max_concurrent_batches',
  'worker.default_max_files_parallel',
  'worker.budgets.cpu_seconds_base',
  'worker.budgets.cpu_seconds_per_gib',
  'worker.budgets.phase_seconds_base',
  'worker.budgets.phase_seconds_per_gib',
  'worker.budgets.memory_bytes',
  'worker.budgets.output_bytes_base',
  'worker.budgets.output_factor',
  'worker.budgets.open_files',
  'worker.sandbox',
  'signing.certificate_path',
  'signing.private_key_path',
  'signing.algorithm',
  'signing.default_identity',
  'signing.tsa_url',
  'signing.tsa_timeout_ms',
  'signing.tsa_required',
  'signing.ocsp',
  'signing.digital_source_type',
  'signing.verify_outputs',
  'signing.verify_fragments',
  'trust.anchors',
  'trust.tsa_anchors',
  'trust.publisher_anchors',
  'trust.allowed',
  'trust.rubrics_dir',
  'input_resolvers.max_files',
  'input_resolvers.max_bytes',
  'input_resolvers.max_depth',
  'input_resolvers.local.roots',
  'input_resolvers.http.deny_networks',
  'input_resolvers.http.max_bytes',
  'input_resolvers.http.idle_timeout_ms',
  'input_resolvers.s3.profile',
  'input_resolvers.s3.region',
  'input_resolvers.s3.endpoint_url',
  'input_resolvers.s3.force_path_style',
  'input_resolvers.s3.buckets',
  'output_sinks.local.base_dir',
  'output_sinks.local.naming',
  'output_sinks.s3.profile',
  'output_sinks.s3.region',
  'output_sinks.s3.endpoint_url',
  'output_sinks.s3.force_path_style',
  'output_sinks.s3.buckets',
  'output_sinks.s3.base_prefix',
  'output_sinks.s3.naming',
  'telemetry.otlp_endpoint',
] as const;

/** Keys of secrets, and of what operators write into every manifest: only that they are set is shown. */
const WITHHELD_KEYS = [
  'auth.tokens',
  'jobs.database_url',
  'signing.private_key_passphrase',
  'signing.actions',
  'callbacks.secret',
] as const;

/** Returns what may be shown of the configuration. User parts and queries of addresses may be passwords, and are left out. */
export function shownConfig(config: Config): ShownConfig {
  const inRecords = RECORDS.flatMap((record) => keysIn(valueAt(config, record), `${record}.`));
  const isSecret = (key: string) => key.endsWith('.private_key_passphrase');
  const shown = [...SHOWN_KEYS, ...inRecords.filter((key) => !isSecret(key))];
  const found = shown.map((key) => [key, withoutUrlSecrets(valueAt(config, key))] as const);
  return {
    settings: Object.fromEntries(found.filter(([, value]) => value !== undefined)),
    withheld: [...WITHHELD_KEYS, ...inRecords.filter(isSecret)].filter((key) => isSet(valueAt(config, key))),
  };
}

/** Returns the keys of values in a table, at any depth. */
function keysIn(value: unknown, prefix: string): readonly string[] {
  return Object.entries(value as object).flatMap(([name, inner]) => {
    const isTable = typeof inner === 'object' && !Array.isArray(inner);
    return isTable ? keysIn(inner, `${prefix}${name}.`) : [`${prefix}${name}`];
  });
}

function valueAt(config: Config, key: string): unknown {
  return key
    .split('.')
    .reduce<unknown>((table, name) => (table as Record<string, unknown> | undefined)?.[name], config);
}

function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined;
}

function withoutUrlSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUrlSecrets);
  if (typeof value !== 'string') return value;
  // Parsed as it is used: with blanks before it, or without slashes, it is an address too.
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol)) return value;
  return Object.assign(url, { username: '', password: '', search: '', hash: '' }).href;
}
