import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import type { Warning } from '#errors/warning.ts';
import { riff } from '#formats/riff/riff.ts';
import {
  createManifestAuthor,
  type ManifestAuthor,
  signAgainIfLarger,
  type TimeStampSettings,
} from '#provenance/manifest-author.ts';
import type { IngredientSource, ManifestRequest } from '#provenance/manifest-request.ts';
import type { Signer } from '#provenance/signer.ts';
import { NO_STAPLES, type StapleSource } from '#provenance/staples.ts';
import { NO_TRUST_LISTS, type TrustSource } from '#provenance/trust-lists.ts';
import { memorySink, memorySource } from '../memory-bytes.ts';
import { defaultIdentity } from './test-identity.ts';

export const generator = { name: 'Attestream', version: '0.0.0-test' };

/** An author with an identity of its own. */
export function testAuthor({
  signer = defaultIdentity.signer,
  publisher = null,
  timeStamps = null,
  staples = { current: NO_STAPLES },
  trust = { current: NO_TRUST_LISTS },
}: {
  signer?: Signer;
  publisher?: Signer | null;
  timeStamps?: TimeStampSettings | null;
  staples?: StapleSource;
  trust?: TrustSource;
} = {}): ManifestAuthor {
  return createManifestAuthor({
    identityOf: () => ({ signer, publisher, timeStamps }),
    staples,
    generator,
    trust,
  });
}

/** A second of silence in 8-bit mono. */
export function smallWav(dataBytes = 8000): Buffer {
  const wav = Buffer.alloc(44 + dataBytes, 0x80);
  wav.write('RIFF', 0, 'latin1');
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8, 'latin1');
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(8000, 24);
  wav.writeUInt32LE(8000, 28);
  wav.writeUInt16LE(1, 32);
  wav.writeUInt16LE(8, 34);
  wav.write('data', 36, 'latin1');
  wav.writeUInt32LE(dataBytes, 40);
  return wav;
}

export const plainParent: IngredientSource & { kind: 'plain' } = {
  kind: 'plain',
  title: 'source.wav',
  mediaType: 'audio/wav',
};

/** A request with nothing in it but a parent that has no manifest. */
export function requestWith(wishes: Partial<ManifestRequest> = {}): ManifestRequest {
  return {
    identity: 'default',
    title: 'signed.wav',
    mediaType: 'audio/wav',
    assertions: [],
    origin: plainParent,
    components: [],
    inputs: [],
    statedActions: [],
    actions: [],
    allActionsIncluded: true,
    ...wishes,
  };
}

interface SignedWav {
  readonly bytes: Buffer;
  readonly warnings: readonly Warning[];
  readonly measuredBytes: number;
  readonly manifest: Uint8Array;
}

/** Signs a small WAV as the service does it: draft, measure, plan, one pass, sign, fill the hole. */
export async function signWav(
  author: ManifestAuthor,
  wishes: Partial<ManifestRequest> = {},
  wav: Buffer = smallWav(),
  signal: AbortSignal = new AbortController().signal,
): Promise<SignedWav> {
  const draft = await author.draft(requestWith(wishes), signal);
  const source = memorySource(wav, 'source.wav');
  const layout = await riff.readLayout(source, signal);
  return signAgainIfLarger(async () => {
    const measuredBytes = await draft.measure([riff.placeholderBinding(layout)], signal);
    const { plan, binding } = riff.planEmbedding(layout, measuredBytes);
    const sink = memorySink(outputSizeBytes(plan));
    const digests = await executePlan(plan, source, sink, { signal });
    const { manifest, warnings } = await draft.sign([binding(digests)], signal);
    await fillHole(plan, sink, manifest, signal);
    return { bytes: sink.bytes, warnings: [...draft.warnings, ...warnings], measuredBytes, manifest };
  });
}
