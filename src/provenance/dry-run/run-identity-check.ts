import { AppError } from '#errors/app-error.ts';
import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import { reserveTimeStamp, signWithIdentity } from '../authoring/sign-manifest.ts';
import { type TimeStampSettings, TimeStamps } from '../authoring/time-stamps.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { Signer } from '../signer.ts';
import { SignerClient } from '../signer-client.ts';
import type { SigningCheck } from '../start-signer.ts';
import type { ManifestProblem } from './dry-run-manifest.ts';
import { dryRunManifest, judgeManifest } from './dry-run-manifest.ts';

// The process behind `checkIdentity` and `probeSigning`: signs one manifest with the key of the signer process, and has both
// official readers validate it.

serveParent(async ({ identity, timeStamps }: SigningCheck) => {
  const client = new SignerClient([identity]);
  client.connect(inheritedChannel());
  tellParent({ answer: await problemsOf(client.signerOf(identity.name), timeStamps) });
});

async function problemsOf(signer: Signer, settings: TimeStampSettings | null): Promise<readonly ManifestProblem[]> {
  const { signal } = new AbortController();
  try {
    const signature = { signer, timeStamps: settings === null ? null : new TimeStamps(settings) };
    const definition = dryRunManifest({ assertions: [], actions: [] });
    const space = await reserveTimeStamp(signature, signal);
    const { manifest } = await signWithIdentity(definition, signature, space, signal);
    return (await judgeManifest(manifest, signal)).problems;
  } catch (error) {
    const problem = error instanceof AppError ? error.message : sdkProblem(error);
    return [{ reader: 'native', problem }];
  }
}
