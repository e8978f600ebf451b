import { once } from 'node:events';
import { extname } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { ManifestProblem } from './dry-run/dry-run-manifest.ts';
import { type SignerProcess, signerChannelOf } from './signer-process.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const PROCESS_URL = new URL(`./dry-run/run-identity-check${extname(import.meta.url)}`, import.meta.url);

const CHECK_TIMEOUT_MS = 60_000;

/**
 * Signs a small manifest with the signing identity. Throws `IDENTITY_INVALID` where one of the official readers calls it
 * invalid. The SDK runs in a process of its own, without the key.
 */
export async function checkIdentity(signer: SignerProcess, launcher: Launcher): Promise<void> {
  const { file } = signer.identity;
  const problems = await judgeInProcess(signer, launcher);
  if (problems.length === 0) return;
  throw new AppError('IDENTITY_INVALID', {
    file,
    problems: problems.map(
      ({ reader, problem }) =>
        `the official ${reader === 'wasm' ? 'WASM' : 'native'} reader refuses what it signs (${problem}). Have the certificate issued by the C2PA certificate profile, with emailProtection among its extended key usages`,
    ),
  });
}

async function judgeInProcess(signer: SignerProcess, launcher: Launcher): Promise<readonly ManifestProblem[]> {
  const child = launcher.launch(PROCESS_URL, { execArgv: [], writable: [], pipeCount: 1 });
  // A process that cannot be started emits an error and no exit.
  const exited = once(child, 'exit').catch(() => [null, 'no process']);
  signer.attach(
    { exited: exited.then(() => undefined), giveChannel: (next) => next.destroy(), kill: () => child.kill('SIGKILL') },
    signerChannelOf(child),
  );
  const timer = setTimeout(() => child.kill('SIGKILL'), CHECK_TIMEOUT_MS);
  const { promise, resolve, reject } = Promise.withResolvers<readonly ManifestProblem[]>();
  child.once('message', (problems) => resolve(problems as readonly ManifestProblem[]));
  child.once('error', reject);
  void exited.then(([code, signal]) =>
    reject(new Error(`the check of the signing identity exited early (${signal ?? code})`)),
  );
  child.send(signer.identity, () => undefined);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
