import { z } from 'zod';
import { decodeCbor, onlyCbor } from '#provenance/jumbf.ts';
import { MAX_PLAYLISTS } from '../playlists/limits.ts';
import { activeManifestOf, isClaimed } from '../verification/stored-claim.ts';
import { PRESENTATION_ALGORITHM, PRESENTATION_LABEL, PRESENTATION_VERSION, type Presentation } from './presentation.ts';

/** The presentation that a manifest states; null where it states none, or why it cannot be compared with. */
export type PresentationReading = Presentation | UnreadPresentation | null;

export interface UnreadPresentation {
  readonly problem: string;
  /** True where a later version of this service states it. */
  readonly isLater: boolean;
}

/** Bytes of a path, as file systems limit them. */
const MAX_URI_LENGTH = 4096;

const digest = z.string().regex(/^[A-Za-z0-9+/]{43}=$/);
const uri = z
  .string()
  .max(MAX_URI_LENGTH)
  .refine((path) => path === path.normalize('NFC') && path.split('/').every((name) => !['', '.', '..'].includes(name)));
const head = { version: z.literal(PRESENTATION_VERSION), alg: z.literal(PRESENTATION_ALGORITHM) };
const size = z.int().nonnegative();
const list = z.strictObject({
  ...head,
  uris: z
    .array(
      z.strictObject({ uri, size, hash: digest, files: digest.exactOptional(), fragments: digest.exactOptional() }),
    )
    .max(MAX_PLAYLISTS)
    .refine((uris) => new Set(uris.map((playlist) => playlist.uri)).size === uris.length),
});
const digestOnly = z.strictObject({ ...head, count: size, hash: digest, fragments: digest.exactOptional() });
const versioned = z.looseObject({ version: z.int() });

/**
 * Reads the presentation of a store's active manifest. It counts only among the created assertions of the claim, and with
 * the hash that the claim has of it: assertions of callers are gathered ones.
 */
export function readPresentation(store: Buffer): PresentationReading {
  const manifest = activeManifestOf(store);
  if (manifest?.claim === undefined) return null;
  const { claim } = manifest;
  const claimed = manifest.assertions.filter(
    (assertion) => isOfPresentation(assertion.label) && isClaimed(assertion, claim, 'created'),
  );
  const [assertion, ...others] = claimed;
  if (assertion === undefined) return null;
  if (others.length > 0)
    return { problem: `its manifest has several assertions ${PRESENTATION_LABEL}`, isLater: false };
  const content = decodeCbor(onlyCbor(assertion));
  const { data: read } = z.union([list, digestOnly]).safeParse(content);
  if (read !== undefined) return read;
  const version = versioned.safeParse(content).data?.version;
  return version !== undefined && version > PRESENTATION_VERSION
    ? {
        problem: `its manifest states the presentation in version ${version}, which this service does not know`,
        isLater: true,
      }
    : { problem: `the assertion ${PRESENTATION_LABEL} of its manifest is malformed`, isLater: false };
}

/** Returns true for the label, with or without the running number that the SDK gives to further ones. */
function isOfPresentation(label: string): boolean {
  return label === PRESENTATION_LABEL || label.startsWith(`${PRESENTATION_LABEL}__`);
}
