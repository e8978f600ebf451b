/** The service's configuration, validated and with every default filled in. Plain data: it crosses to the workers. */
export interface Config {
  readonly server: {
    readonly bind_addr: string;
    readonly sync_timeout_ms: number;
    readonly sync_poll_interval_ms: number;
    readonly max_upload_bytes: number;
    readonly docs: boolean;
  };
  readonly auth: { readonly tokens: readonly string[] };
  readonly jobs: {
    readonly data_dir: string;
    readonly scratch_dir: string;
    readonly retention_hours: number;
  };
  readonly worker: {
    readonly queue_capacity: number;
    readonly max_inputs_per_job: number;
    readonly max_concurrent_batches: number;
    readonly default_max_files_parallel: number;
  };
  readonly signing: {
    readonly certificate_path?: string;
    readonly private_key_path?: string;
    readonly private_key_passphrase?: string;
    readonly algorithm?: 'es256' | 'es384' | 'es512' | 'ps256' | 'ps384' | 'ps512' | 'ed25519';
    readonly tsa_url?: string;
    readonly tsa_timeout_ms: number;
    readonly verify_outputs: boolean;
    readonly verify_fragments: 'sample' | 'all';
  };
  readonly input_resolvers: {
    readonly max_files: number;
    readonly max_bytes: number;
    readonly max_depth: number;
    readonly local: { readonly roots?: readonly string[] };
  };
  readonly output_sinks: {
    readonly local: { readonly base_dir: string; readonly naming: 'derived' | 'in_place' };
  };
}
