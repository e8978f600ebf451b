import { AppError } from '#errors/app-error.ts';
import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import { reserveTimeStamp, signWithIdentity } from '../authoring/sign-manifest.ts';
import { type TimeStampSettings, TimeStamps } from '../authoring/time-stamps.ts';
import type { CheckAnswer, SigningCheck } from '../check-identity.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { Signer } from '../signer.ts';
import { SignerClient } from '../signer-client.ts';
import { NO_STAPLES } from '../staples.ts';
import { dryRunManifest, judgeManifest } from './dry-run-manifest.ts';

// The process behind `checkCredential` and `probeSigning`: signs one manifest with a key of a signer process, and has both
// official readers validate it.

serveParent(async ({ identity, timeStamps }: SigningCheck) => {
  const client = new SignerClient([identity]);
  client.connectAll(inheritedChannel);
  const { signer, publisher } = client.identityOf(identity.name);
  tellParent({ answer: await answerOf(signer, publisher, timeStamps) });
});

async function answerOf(
  signer: Signer,
  publisher: Signer | null,
  settings: TimeStampSettings | null,
): Promise<CheckAnswer> {
  const { signal } = new AbortController();
  try {
    const timeStamps = settings === null ? null : new TimeStamps(settings);
    const signature = { signer, publisher: null, timeStamps, staples: { current: NO_STAPLES } };
    const definition = dryRunManifest({ assertions: [], actions: [] });
    const space = await reserveTimeStamp(signature, signal);
    const { manifest } = await signWithIdentity(definition, signature, space, signal);
    await publisher?.sign(Buffer.from('probe'));
    return { problems: (await judgeManifest(manifest, signal)).problems };
  } catch (error) {
    if (error instanceof AppError) return { error: error.toData() };
    return { problems: [{ reader: 'native', problem: sdkProblem(error) }] };
  }
}
