import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { Config } from '#config/config.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import type { SigningRequest } from '#provenance/signing-request.ts';
import { EXIT } from '../exit-codes.ts';
import { Terminal } from '../terminal.ts';

export function addIdentityCommand(program: Command): void {
  const identity = program.command('identity').description('Requests, checks and installs a signing identity.');
  identity
    .command('csr')
    .description('Makes a private key, and a request that an authority makes a certificate of.')
    .requiredOption('--organization <name>', 'organization, which readers show as the signer')
    .requiredOption('--common-name <name>', 'name of the signer, such as "Newsroom 1"')
    .addOption(new Option('--algorithm <name>', 'signature algorithm').choices(SIGNING_ALGORITHMS).default('es256'))
    .option('--key <file>', 'new file of the private key', 'key.pem')
    .option('--csr <file>', 'new file of the request', 'request.pem')
    .option('--json', 'one entry a line, as JSON')
    .action(request);
  filesOf(identity.command('check'))
    .description('Checks a certificate chain and its key against the certificate profile of C2PA.')
    .action(check);
  filesOf(identity.command('install'))
    .description('Checks a new pair, and puts it where the service reads it. A running service notices by itself.')
    .action(install);
}

function filesOf(command: Command): Command {
  return command
    .option('--certificate <file>', 'certificate chain in PEM, the signing certificate first')
    .option('--key <file>', 'private key in PEM')
    .option('--config <file>', 'configuration file')
    .option('--json', 'one entry a line, as JSON');
}

interface RequestOptions extends SigningRequest {
  readonly key: string;
  readonly csr: string;
  readonly json?: boolean;
}

async function request(options: RequestOptions, command: Command): Promise<void> {
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
  readonly config?: string;
  readonly json?: boolean;
}

interface Pair {
  readonly certificatePath: string;
  readonly privateKeyPath: string;
}

async function check(options: PairOptions, command: Command): Promise<void> {
  const { loadCommandConfig } = await import('../run-options.ts');
  const { config } = await loadCommandConfig(options);
  const pair = givenPair(options, command) ?? configuredPair(config);
  if (pair === null) {
    return command.error(
      'No identity is configured (signing.certificate_path, signing.private_key_path). Give --certificate and --key.',
    );
  }
  if (!(await report(pair, config, new Terminal(options)))) process.exitCode = EXIT.usage;
}

async function install(options: PairOptions, command: Command): Promise<void> {
  const terminal = new Terminal(options);
  const { loadCommandConfig } = await import('../run-options.ts');
  const { config } = await loadCommandConfig(options);
  const given = givenPair(options, command);
  const target = configuredPair(config);
  if (given === null) return command.error('Give --certificate and --key.');
  if (target === null) {
    return command.error(
      'The configuration names no files to install to. Set signing.certificate_path and signing.private_key_path.',
    );
  }
  if (!(await report(given, config, terminal))) return command.error('Nothing was installed.');
  const { installIdentityFiles } = await import('#provenance/identity-files.ts');
  const { certificatePath: certificate, privateKeyPath: key } = target;
  try {
    await installIdentityFiles(given, target);
  } catch (error) {
    refuse(error, `The identity cannot be written to ${certificate} and ${key}`, command);
  }
  terminal.result({ installed: { certificate, key } }, `Installed as ${certificate} and ${key}.`);
}

function givenPair({ certificate, key }: PairOptions, command: Command): Pair | null {
  if ((certificate === undefined) !== (key === undefined))
    return command.error('Give --certificate and --key together.');
  if (certificate === undefined || key === undefined) return null;
  return { certificatePath: resolve(certificate), privateKeyPath: resolve(key) };
}

function configuredPair({ signing }: Config): Pair | null {
  const { certificate_path: certificatePath, private_key_path: privateKeyPath } = signing;
  return certificatePath === undefined || privateKeyPath === undefined ? null : { certificatePath, privateKeyPath };
}

/** Writes each problem and warning of a pair. Returns true where the service can sign with it. */
async function report(pair: Pair, { signing, trust }: Config, terminal: Terminal): Promise<boolean> {
  const { checkIdentityFiles } = await import('#provenance/identity-files.ts');
  const { TrustStore } = await import('#provenance/trust-store.ts');
  const { CollectedLog } = await import('#telemetry/collected-log.ts');
  const log = new CollectedLog();
  const store = await TrustStore.open({ settings: trust, log: new CollectedLog() });
  const files = { ...pair, passphrase: signing.private_key_passphrase, algorithm: signing.algorithm };
  try {
    const { identity, problems } = await checkIdentityFiles(files, store, log);
    for (const problem of problems) terminal.result({ state: 'failed', problem }, `failed   ${problem}`);
    for (const { level, message, fields } of log.messages) {
      if (level === 'info') continue;
      const { problem = message, remedy } = fields as { readonly problem?: string; readonly remedy?: string };
      const state = level === 'error' ? 'failed' : 'warning';
      terminal.result({ state, ...fields, problem }, `${state.padEnd(8)} ${problem}. ${capitalized(remedy ?? '')}`);
    }
    const isFit = problems.length === 0 && log.messages.every(({ level }) => level !== 'error');
    const { subject, algorithm, notAfter } = identity;
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
