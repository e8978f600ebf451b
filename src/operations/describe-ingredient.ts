import { type ByteSource, openedPathOf, readRange } from '#bytes/byte-source.ts';
import { pinnedCopyOf } from '#bytes/local-copies.ts';
import type { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { HEAD_SIZE_BYTES, type MediaLayout, type ReadableLayout } from '#formats/format-handler.ts';
import { formatOf, readVerifiableFile } from '#formats/formats.ts';
import { findPictureManifest } from '#formats/picture-manifest.ts';
import type { OpeningContext } from '#inputs/input-opener.ts';
import { fileIngredient, type IngredientSource } from '#provenance/manifest-request.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import { problemsIn, VALID_ASSET } from '#provenance/validation-report.ts';
import { readStore, storeRangesOf } from './embedded-store.ts';
import { judgeReading, NO_STORE, type ReadFile } from './verification/judge-reading.ts';

type FileIngredient = IngredientSource & { readonly kind: 'file' };

/** A source, and what its bytes tell about it as an ingredient. */
export interface DescribedFile {
  readonly source: ByteSource;
  readonly layout: ReadableLayout;
}

/** An ingredient before its role is known, with warnings. */
export interface UnassignedIngredient {
  readonly ingredient: IngredientSource;
  readonly warnings: readonly Warning[];
}

/** Returns the ingredient of a file. One with a manifest is copied to this host first, because the SDK reads it by its path. */
export async function describeIngredient(file: DescribedFile, context: OpeningContext): Promise<UnassignedIngredient> {
  const { source, layout } = file;
  const described = { title: source.name, mediaType: layout.mediaType };
  const isUnreadable = layout.elements.some(({ content }) => content === null);
  if (layout.manifest === null && !isUnreadable) {
    const xmpText = await xmpTextOf(file, context.signal);
    const instanceId = instanceIdIn(xmpText);
    return {
      ingredient: { kind: 'plain', ...described, ...(instanceId !== null && { instanceId }) },
      warnings: remoteWarnings(source, xmpText),
    };
  }
  const pinned = await pinnedCopyOf(source, context.scratch, context.signal);
  // A server may have given other bytes of it before: the copy is what the SDK reads.
  if (pinned !== source) return await describeIngredient(await readVerifiableFile(pinned, context.signal), context);
  const manifest = {
    sizeBytes: storeRangesOf(layout).reduce((sum, { length }) => sum + length, 0),
    read: (signal: AbortSignal) =>
      isUnreadable ? Promise.reject(new Error(NO_STORE)) : readStore(pinned, layout, signal),
  };
  const judge = judgeOf({
    source: pinned,
    path: openedPathOf(pinned),
    mediaType: layout.mediaType,
    layout,
    picture: null,
    problem: null,
  });
  return { ingredient: { ...fileIngredient(pinned, described), manifest, judge }, warnings: [] };
}

/**
 * Describes a file whose container cannot be read here, such as a picture: the SDK reads from it what it can. `refusal` is the error of
 * its container.
 */
export async function describeUnknown(
  source: ByteSource,
  refusal: AppError,
  { scratch, signal }: OpeningContext,
): Promise<IngredientSource> {
  const pinned = await pinnedCopyOf(source, scratch, signal);
  const head = await readRange(pinned, 0, Math.min(pinned.sizeBytes, HEAD_SIZE_BYTES), signal);
  const still = stillMediaType(head);
  const problem = still !== null && refusal.reason === 'FORMAT_UNKNOWN' ? null : refusal;
  const mediaType = still ?? formatOf(head)?.mediaType ?? source.claimedMediaType ?? 'application/octet-stream';
  const picture = await findPictureManifest(pinned, mediaType, signal);
  const judge = judgeOf({ source: pinned, path: openedPathOf(pinned), mediaType, layout: null, picture, problem });
  return { ...fileIngredient(pinned, { title: source.name, mediaType }), judge };
}

/** Returns the judge of a file, which is that of `verify`. The SDK has read the file by then. */
function judgeOf(file: Omit<ReadFile, 'store' | 'isSidecar'>): NonNullable<FileIngredient['judge']> {
  return async (report, store, signal) => {
    const { reading, leftOut, unread } = await judgeReading(report, { ...file, store, isSidecar: false }, null, signal);
    if (reading === 'none') return [{ code: 'general.error', explanation: NO_STORE }];
    if ('problem' in reading) return [{ code: 'general.error', explanation: reading.problem }];
    const { failure = [] } = reading.validation_results?.activeManifest ?? {};
    const refused = failure.filter(({ code }) => !VALID_ASSET.tolerated.includes(code));
    if (leftOut?.kind === 'failure')
      return [...refused, { code: leftOut.code, explanation: leftOut.explanation ?? leftOut.code }];
    const [problem] = unread === null ? problemsIn(reading.validation_results, VALID_ASSET) : [unread.message];
    return problem === undefined || refused.length > 0 ? refused : [{ code: 'general.error', explanation: problem }];
  };
}

/** Bytes of an XMP packet that are searched for an identifier and for the address of a remote manifest. */
const MAX_XMP_BYTES = 1024 * 1024;

/** Returns the XMP packet of a file; an empty text where it has none. */
async function xmpTextOf({ source, layout }: DescribedFile, signal: AbortSignal): Promise<string> {
  if (layout.xmp === null) return '';
  const { offset, length } = layout.xmp;
  return (await readRange(source, offset, Math.min(length, MAX_XMP_BYTES), signal)).toString('utf8');
}

/** Warns about a remote manifest. */
export async function remoteManifestWarnings(file: DescribedFile, signal: AbortSignal): Promise<Warning[]> {
  return remoteWarnings(file.source, await xmpTextOf(file, signal));
}

/** Warns about a remote manifest, which is never fetched: an address inside an input must not cause requests. */
function remoteWarnings({ name: title }: ByteSource, xmpText: string): Warning[] {
  return namesRemoteManifest(xmpText) ? [warning('REMOTE_MANIFEST_NOT_FETCHED', { title })] : [];
}

/** Returns the warnings about media in other files; others are of an output that embeds its manifest. */
export function elsewhereWarnings({ warnings = [] }: Pick<MediaLayout, 'warnings'>): Warning[] {
  return warnings.filter(({ reason }) => reason === 'MEDIA_IN_OTHER_FILES');
}

/**
 * `dcterms:provenance` as an attribute (`dcterms:provenance="…"`) or as an element (`<dcterms:provenance>…`), under
 * any prefix: the prefix is the packet's choice.
 */
const PROVENANCE_PROPERTY = /(?:\s[\w.-]+:provenance\s*=\s*["']\s*[^"'\s])|(?:<[\w.-]+:provenance[\s>/])/;

/**
 * Tells whether an XMP packet names the address of a manifest (`dcterms:provenance`; C2PA 2.2 §11.4). Such an address is
 * never fetched; the file is treated as one without a manifest, with a warning.
 */
export function namesRemoteManifest(xmpText: string): boolean {
  return PROVENANCE_PROPERTY.test(xmpText);
}

/** `xmpMM:InstanceID` as an attribute or as an element, under any prefix. References to other files have `instanceID`. */
const INSTANCE_ID_PROPERTY = /\s[\w.-]+:InstanceID\s*=\s*(?:"([^"<]*)"|'([^'<]*)')|<[\w.-]+:InstanceID\s*>([^<]*)</;
const MAX_INSTANCE_ID_CHARACTERS = 255;

/**
 * Returns the identifier that an XMP packet gives its file (C2PA 2.2 §8.3). Returns null where there is none, and for one
 * that is longer than 255 characters, escaped or not printable.
 */
export function instanceIdIn(xmpText: string): string | null {
  const found = INSTANCE_ID_PROPERTY.exec(xmpText);
  const value = (found?.[1] ?? found?.[2] ?? found?.[3] ?? '').trim();
  const isUsable = /^[^\p{C}&]+$/u.test(value) && value.isWellFormed() && value.length <= MAX_INSTANCE_ID_CHARACTERS;
  return isUsable ? value : null;
}
