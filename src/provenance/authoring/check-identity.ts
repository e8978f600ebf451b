import { once } from 'node:events';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import type { Launcher } from '#processes/launcher.ts';
import { FIRST_CHANNEL } from '../identity/signer-messages.ts';
import type { SignerProcess } from '../identity/signer-process.ts';
import type { ManifestProblem } from '../reading/judge-manifest.ts';

/** In a build, every module is JavaScript. */
const PROCESS_URL = new URL(`./run-identity-check${extname(import.meta.url)}`, import.meta.url);

const CHECK_TIMEOUT_MS = 60_000;

/**
 * Signs a small manifest with the signing identity and rejects with IDENTITY_INVALID where one of the official readers calls
 * it invalid. The SDK runs in a process of its own, without the key.
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
  // Where no process could be started, there is an error and no exit.
  const ended = once(child, 'exit').catch(() => [null, 'no process']);
  const channel = child.stdio[FIRST_CHANNEL] as Socket;
  signer.attach({ ended: ended.then(() => undefined), giveChannel: (next) => next.destroy() }, channel);
  const timer = setTimeout(() => child.kill('SIGKILL'), CHECK_TIMEOUT_MS);
  const { promise, resolve, reject } = Promise.withResolvers<readonly ManifestProblem[]>();
  child.once('message', (problems) => resolve(problems as readonly ManifestProblem[]));
  child.once('error', reject);
  void ended.then(([code, signal]) =>
    reject(new Error(`the check of the signing identity ended early (${signal ?? code})`)),
  );
  child.send(signer.identity, () => undefined);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
