import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Config } from '#config/config.ts';
import { defaultIdentityOf, type IdentitySettings, identitiesOf, signerStateDir } from '#config/identities.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import type { IdentityFiles } from '#provenance/identity-files.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import type { CredentialDescription } from '#provenance/signing-identity.ts';
import type { SigningRequest } from '#provenance/signing-request.ts';
import type { TrustSource } from '#provenance/trust-lists.ts';
import type { Log } from '#telemetry/logger.ts';
import { EXIT } from '../exit-codes.ts';
import { Terminal } from '../terminal.ts';

export function addIdentityCommand(program: Command): void {
  const identity = program.command('identity').description('Requests, checks and installs a signing identity.');
  identity
    .command('csr')
    .description(
      'Makes a request that an authority makes a certificate of, and its private key, unless a device holds that.',
    )
    .requiredOption('--organization <name>', 'organization, which readers show as the signer', nameOf)
    .requiredOption('--common-name <name>', 'name of the signer, such as "Newsroom 1"', nameOf)
    .addOption(new Option('--algorithm <name>', 'signature algorithm').choices(SIGNING_ALGORITHMS).default('es256'))
    .option('--identity <name>', 'configured identity whose device signs the request; its certificate need not exist')
    .option('--publisher', 'the request is for the publisher of that identity')
    .option('--key <file>', 'new file of the private key', 'key.pem')
    .option('--csr <file>', 'new file of the request', 'request.pem')
    .option('--config <file>', 'configuration file')
    .option('--json', 'one entry a line, as JSON')
    .action(request);
  filesOf(identity.command('check'))
    .description(
      'Checks a certificate chain and its key, or an identity, against the certificate profile of C2PA, and signs once with it.',
    )
    .action(check);
  filesOf(identity.command('install'))
    .description('Checks a new pair, and puts it where the service reads it. A running service notices by itself.')
    .action(install);
}

function filesOf(command: Command): Command {
  return command
    .option('--certificate <file>', 'certificate chain in PEM, the signing certificate first')
    .option('--key <file>', 'private key in PEM')
    .option('--identity <name>', 'identity of the configuration; the default one where there are several')
    .option('--config <file>', 'configuration file')
    .option('--json', 'one entry a line, as JSON');
}

function nameOf(value: string): string {
  if (value.trim() !== '') return value;
  throw new InvalidArgumentError('Give a name.');
}

interface RequestOptions extends SigningRequest {
  readonly key: string;
  readonly csr: string;
  readonly identity?: string;
  readonly publisher?: boolean;
  readonly config?: string;
  readonly json?: boolean;
}

async function request(options: RequestOptions, command: Command): Promise<void> {
  if (options.identity !== undefined) return requestOfDevice(options.identity, options, command);
  if (options.publisher) return command.error('--publisher needs --identity.');
  const terminal = new Terminal(options);
  const { key, csr } = options;
  const { makeSigningRequest } = await import('#provenance/signing-request.ts');
  const made = await makeSigningRequest(options);
  await writeNew(csr, made.request, 0o644, command);
  try {
    await writeNew(key, made.key, 0o600, command);
  } catch (error) {
    await rm(csr, { force: true });
    throw error;
  }
  terminal.result({ key, csr }, `Private key: ${key}\nRequest: ${csr}`);
  terminal.note(
    `Send ${csr} to your certificate authority, and keep ${key} to yourself. Then: attestream identity install --certificate <chain> --key ${key}`,
  );
}

async function requestOfDevice(name: string, options: RequestOptions, command: Command): Promise<void> {
  const ignored = (['key', 'algorithm'] as const).find((each) => command.getOptionValueSource(each) === 'cli');
  if (ignored !== undefined)
    return command.error(
      `--${ignored} cannot stand beside --identity: the configuration says which key signs, and how.`,
    );
  const { loadCommandConfig } = await import('../run-options.ts');
  const { config } = await loadCommandConfig(options);
  const { identities } = config.signing;
  const configured = Object.hasOwn(identities, name) ? identities[name] : undefined;
  const identity = options.publisher ? configured?.publisher : configured;
  const key = options.publisher ? `${name}.publisher` : name;
  const use = options.publisher ? 'publisher' : 'claim';
  if (identity === undefined) return command.error(`The configuration has no section [signing.identities.${key}].`);
  const { signer, algorithm } = identity;
  if (signer.type === 'pem') {
    return command.error(
      `The key of signing.identities.${key} is a file. Leave --identity out: a request is made with a key of its own.`,
    );
  }
  const { makeDeviceRequest } = await import('#provenance/signing-request.ts');
  const made = await makeDeviceRequest(options, { signer, algorithm, use }, signerStateDir(config));
  const { csr } = options;
  await writeNew(csr, made.request, 0o644, command);
  const terminal = new Terminal(options);
  terminal.result({ csr, algorithm: made.algorithm }, `Request: ${csr}`);
  terminal.note(
    `Send ${csr} to your certificate authority, and put the chain that it issues into ${identity.certificate_path}.`,
  );
}

/** Writes a file that must not exist: a key that is overwritten is lost, and with it the certificate that was made for it. */
async function writeNew(file: string, text: string, mode: number, command: Command): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx', mode, flush: true });
  } catch (error) {
    refuse(error, `${file} cannot be written`, command);
  }
}

/** Ends a command with an error of the system; throws every other one. */
function refuse(error: unknown, subject: string, command: Command): never {
  if (!isSystemError(error)) throw error;
  return command.error(`${subject}: ${problemOf(error)}.`);
}

interface PairOptions {
  readonly certificate?: string;
  readonly key?: string;
  readonly identity?: string;
  readonly config?: string;
  readonly json?: boolean;
}

async function check(options: PairOptions, command: Command): Promise<void> {
  const { loadCommandConfig } = await import('../run-options.ts');
  const { config } = await loadCommandConfig(options);
  const identity = identityFor(options, config, command);
  const given = givenFiles(options, command);
  if (given === null && identity.signer.type === 'development') {
    return command.error(
      'No identity is configured (signing.certificate_path, signing.private_key_path). Give --certificate and --key.',
    );
  }
  const isFit = await report(
    given === null ? startOf(identity, config) : filesCheckOf(identity, given, config),
    config,
    options,
  );
  if (!isFit) process.exitCode = EXIT.usage;
}

async function install(options: PairOptions, command: Command): Promise<void> {
  const { loadCommandConfig } = await import('../run-options.ts');
  const { config } = await loadCommandConfig(options);
  const identity = identityFor(options, config, command);
  const given = givenFiles(options, command);
  if (given === null) return command.error('Give --certificate and --key.');
  const { certificatePath: certificate, signer } = identity;
  if (signer.type !== 'pem') {
    return command.error(
      signer.type === 'development'
        ? 'The configuration names no files to install to. Set signing.certificate_path and signing.private_key_path.'
        : `The key of the identity ${identity.name} is in no file (${signer.type}). Replace ${certificate} by the new certificate.`,
    );
  }
  if (!(await report(filesCheckOf(identity, given, config), config, options)))
    return command.error('Nothing was installed.');
  const { installIdentityFiles } = await import('#provenance/identity-files.ts');
  const key = signer.private_key_path;
  try {
    await installIdentityFiles(given, { certificatePath: certificate, privateKeyPath: key });
  } catch (error) {
    refuse(error, `The identity cannot be written to ${certificate} and ${key}`, command);
  }
  new Terminal(options).result({ installed: { certificate, key } }, `Installed as ${certificate} and ${key}.`);
}

function identityFor({ identity: name }: PairOptions, config: Config, command: Command): IdentitySettings {
  const identities = identitiesOf(config);
  const wanted = name ?? defaultIdentityOf(config);
  const found = identities.find((each) => each.name === wanted);
  const names = identities.map((each) => each.name).join(', ');
  return found ?? command.error(`There is no identity ${wanted}. There are: ${names}.`);
}

function givenFiles({ certificate, key }: PairOptions, command: Command): IdentityFiles | null {
  if ((certificate === undefined) !== (key === undefined))
    return command.error('Give --certificate and --key together.');
  if (certificate === undefined || key === undefined) return null;
  return { certificatePath: resolve(certificate), privateKeyPath: resolve(key) };
}

/** A check of a credential, which logs its warnings. Returns nothing where it cannot be loaded at all. */
type CredentialCheck = (
  trust: TrustSource,
  log: Log,
) => Promise<{ readonly credential?: CredentialDescription; readonly problems: readonly string[] }>;

/** Checks files with the passphrase and the algorithm of an identity, and signs once with them. */
function filesCheckOf(
  { name, algorithm, signer }: IdentitySettings,
  given: IdentityFiles,
  config: Config,
): CredentialCheck {
  const { certificatePath, privateKeyPath } = given;
  const own = signer.type === 'pem' ? signer : { type: 'pem' as const };
  return async (trust, log) => {
    const { checkIdentityFiles } = await import('#provenance/identity-files.ts');
    const settings = {
      certificatePath,
      ...(algorithm && { algorithm }),
      signer: { ...own, private_key_path: privateKeyPath },
    };
    return await checkIdentityFiles(settings, name, { config, trust, log });
  };
}

/** Starts the signer of an identity as the service does, which signs once with it. */
function startOf({ name }: IdentitySettings, config: Config): CredentialCheck {
  return async (trust, log) => {
    const { checkConfiguredIdentity } = await import('#provenance/identity-files.ts');
    return await checkConfiguredIdentity(name, { config, trust, log });
  };
}

/** Writes each problem and warning of a credential. Returns true where the service can sign with it. */
async function report(check: CredentialCheck, { trust }: Config, options: PairOptions): Promise<boolean> {
  const { TrustStore } = await import('#provenance/trust-store.ts');
  const { CollectedLog } = await import('#telemetry/collected-log.ts');
  const terminal = new Terminal(options);
  const log = new CollectedLog();
  const store = await TrustStore.open({ settings: trust, log: new CollectedLog() });
  try {
    const { credential, problems } = await check(store, log);
    for (const problem of problems) terminal.result({ state: 'failed', problem }, `failed   ${problem}`);
    for (const { level, message, fields } of log.messages) {
      if (level === 'info') continue;
      const { problem = message, remedy } = fields as { readonly problem?: string; readonly remedy?: string };
      const state = level === 'error' ? 'failed' : 'warning';
      terminal.result({ state, ...fields, problem }, `${state.padEnd(8)} ${problem}. ${capitalized(remedy ?? '')}`);
    }
    const isFit = problems.length === 0 && log.messages.every(({ level }) => level !== 'error');
    if (credential === undefined) return false;
    const { subject, algorithm, notAfter } = credential;
    const text = `${isFit ? 'ok' : 'unusable'}: ${subject}; ${algorithm}; until ${notAfter}`;
    terminal.result({ state: isFit ? 'ok' : 'failed', subject, algorithm, not_after: notAfter }, text);
    return isFit;
  } finally {
    store.close();
  }
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
