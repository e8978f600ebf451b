import { Socket } from 'node:net';
import { RemoteSigner } from '../identity/remote-signer.ts';
import { FIRST_CHANNEL } from '../identity/signer-messages.ts';
import type { IdentityDescription } from '../identity/signing-identity.ts';
import { signForReal } from '../identity/signing-pass.ts';
import type { ManifestProblem } from '../reading/judge-manifest.ts';
import { judgeManifest } from '../reading/judge-manifest.ts';
import { sdkProblem } from '../sdk-problem.ts';
import { dryRunManifest } from './dry-run-manifest.ts';

// The process behind `checkIdentity`: signs one manifest with the key of the signer process, has both official readers
// judge it, and ends.

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.once('message', async (identity: IdentityDescription) => {
  const signer = new RemoteSigner(identity);
  signer.connect(new Socket({ fd: FIRST_CHANNEL }));
  process.send?.(await problemsOf(signer));
});

async function problemsOf(signer: RemoteSigner): Promise<readonly ManifestProblem[]> {
  const { signal } = new AbortController();
  try {
    const store = await signForReal(dryRunManifest(), { signer, timeStampAuthority: null }, signal);
    return (await judgeManifest(store, signal)).problems;
  } catch (error) {
    return [{ reader: 'native', problem: sdkProblem(error) }];
  }
}
