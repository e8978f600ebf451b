import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { AppError } from '#errors/app-error.ts';
import manifest from '../../package.json' with { type: 'json' };
import type { Config } from './config.ts';

/** Packages that the published package leaves to its operator, and the keys of the configuration that ask for them. */
const FEATURES: readonly { packages: readonly string[]; keys: (config: Config) => (string | false)[] }[] = [
  {
    packages: ['@aws-sdk/client-s3'],
    keys: ({ input_resolvers: inputs, output_sinks: outputs }) => [
      inputs.s3 !== undefined && 'input_resolvers.s3',
      outputs.s3 !== undefined && 'output_sinks.s3',
    ],
  },
  {
    packages: ['pg', 'pg-boss'],
    keys: ({ jobs }) => [jobs.database_url !== undefined && 'jobs.database_url'],
  },
  {
    packages: ['@opentelemetry/exporter-trace-otlp-http', '@opentelemetry/resources', '@opentelemetry/sdk-trace'],
    keys: ({ telemetry }) => [telemetry.otlp_endpoint !== undefined && 'telemetry.otlp_endpoint'],
  },
  { packages: ['@aws-sdk/client-kms'], keys: (config) => signersOf(config, 'aws_kms') },
  { packages: ['pkcs11js'], keys: (config) => signersOf(config, 'pkcs11') },
];

/** Returns the keys of identities and publishers whose signers have a type. */
function signersOf({ signing }: Config, type: string): string[] {
  return Object.entries(signing.identities).flatMap(([name, { signer, publisher }]) => [
    ...(signer.type === type ? [`signing.identities.${name}.signer`] : []),
    ...(publisher?.signer.type === type ? [`signing.identities.${name}.publisher.signer`] : []),
  ]);
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Returns the packages with the versions that the tests cover, such as `^8.23.1`: dependencies of a clone, peers of the package. */
export function optionalPackages(): Readonly<Record<string, string>> {
  const { dependencies, optionalDependencies, peerDependencies }: Manifest = manifest;
  const ranges = { ...dependencies, ...optionalDependencies, ...peerDependencies };
  const names = FEATURES.flatMap(({ packages }) => packages);
  return Object.fromEntries(names.map((name) => [name, ranges[name] ?? '']));
}

/** Throws OPTIONAL_PACKAGES_MISSING where a package that the configuration asks for has none of these versions. Loads none. */
export function requireOptionalPackages(config: Config): void {
  const ranges = optionalPackages();
  const problems = FEATURES.flatMap(({ packages, keys }) => {
    const asking = keys(config).filter((key) => key !== false);
    return asking.length === 0 ? [] : packages.flatMap((name) => problemOf(name, ranges[name] ?? '', asking));
  });
  if (problems.length === 0) return;
  throw new AppError('OPTIONAL_PACKAGES_MISSING', {
    keys: [...new Set(problems.flatMap(({ keys }) => keys))],
    lacking: problems.map(({ text }) => text),
    wanted: problems.map(({ wanted }) => wanted),
  });
}

interface Problem {
  readonly keys: readonly string[];
  readonly text: string;
  /** The package with the tested versions, as an argument of `npm install`. */
  readonly wanted: string;
}

function problemOf(name: string, range: string, keys: readonly string[]): Problem[] {
  const version = installedVersion(name);
  if (version !== null && isInRange(version, range)) return [];
  const found = version === null ? 'not installed' : `${version} is installed`;
  return [{ keys, text: `${name} ${range} (${found})`, wanted: `"${name}@${range}"` }];
}

function installedVersion(name: string): string | null {
  try {
    import.meta.resolve(name);
  } catch {
    return null;
  }
  const path = findPackageJSON(name, import.meta.url);
  return path === undefined ? null : JSON.parse(readFileSync(path, 'utf8')).version;
}

/** Compares a version with a range of npm of the form `^1.2.3`: the first number that is not zero has to be the same. */
export function isInRange(version: string, range: string): boolean {
  const [found, least] = [numbersOf(version), numbersOf(range)];
  const fixed = least.findIndex((number) => number > 0);
  const differing = found.findIndex((number, index) => number !== least[index]);
  return differing === -1 || (differing > fixed && (found[differing] ?? 0) > (least[differing] ?? 0));
}

function numbersOf(text: string): number[] {
  return (/\d+\.\d+\.\d+/.exec(text)?.[0] ?? '').split('.').map(Number);
}
