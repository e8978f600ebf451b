/** Variables that every child process may need: where programs, certificates and temporary files are, and the locale. */
const BASE_VARIABLES: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  // Names the file that no request may read; what is in it stays with the service.
  'SERVICE_CONFIG_PATH',
]);
const BASE_PREFIXES: readonly string[] = ['LC_', 'MALLOC_', 'UV_'];

/** The standard credential chain of the AWS SDK reads these. */
const AWS_PREFIX = 'AWS_';

/**
 * Returns the variables that a child process of the service gets: those of an allow-list, so that no secret of the
 * service's environment (`SERVICE__…`) reaches one. `names` are further ones to pass on.
 */
export function childEnvironment(
  env: NodeJS.ProcessEnv,
  { s3 = false, names = [] }: { readonly s3?: boolean; readonly names?: readonly string[] } = {},
): NodeJS.ProcessEnv {
  const isPassedOn = (name: string): boolean =>
    BASE_VARIABLES.has(name) ||
    BASE_PREFIXES.some((prefix) => name.startsWith(prefix)) ||
    (s3 && name.startsWith(AWS_PREFIX)) ||
    names.includes(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => isPassedOn(name)));
}
