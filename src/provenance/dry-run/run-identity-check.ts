import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import { signWithIdentity } from '../authoring/sign-manifest.ts';
import { NO_TIME_STAMP } from '../authoring/time-stamps.ts';
import { RemoteSigner } from '../remote-signer.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { IdentityDescription } from '../signing-identity.ts';
import type { ManifestProblem } from './dry-run-manifest.ts';
import { dryRunManifest, judgeManifest } from './dry-run-manifest.ts';

// The process behind `checkIdentity`: signs one manifest with the key of the signer process, has both official readers
// validate it.

serveParent(async (identity: IdentityDescription) => {
  const signer = new RemoteSigner(identity);
  signer.connect(inheritedChannel());
  tellParent({ answer: await problemsOf(signer) });
});

async function problemsOf(signer: RemoteSigner): Promise<readonly ManifestProblem[]> {
  const { signal } = new AbortController();
  try {
    const signature = { signer, timeStamps: null };
    const definition = dryRunManifest({ assertions: [], actions: [] });
    const { manifest } = await signWithIdentity(definition, signature, NO_TIME_STAMP, signal);
    return (await judgeManifest(manifest, signal)).problems;
  } catch (error) {
    return [{ reader: 'native', problem: sdkProblem(error) }];
  }
}
