import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import { signWithIdentity } from '../authoring/sign-manifest.ts';
import { NO_TIME_STAMP } from '../authoring/time-stamps.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { Signer } from '../signer.ts';
import { SignerClient } from '../signer-client.ts';
import type { IdentityDescription } from '../signing-identity.ts';
import type { ManifestProblem } from './dry-run-manifest.ts';
import { dryRunManifest, judgeManifest } from './dry-run-manifest.ts';

// The process behind `checkIdentity`: signs one manifest with the key of the signer process, has both official readers
// validate it.

serveParent(async (identity: IdentityDescription) => {
  const client = new SignerClient([identity]);
  client.connect(inheritedChannel());
  tellParent({ answer: await problemsOf(client.signerOf(identity.name)) });
});

async function problemsOf(signer: Signer): Promise<readonly ManifestProblem[]> {
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
