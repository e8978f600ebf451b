import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { pinnedCopyOf } from '#bytes/local-copies.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import { type FormatHandler, HEAD_SIZE_BYTES, type MediaLayout } from '#formats/format-handler.ts';
import { formatUnknown, recogniseFormat } from '#formats/formats.ts';

/** A source whose format is known from its bytes, with its layout. */
export interface SignableFile {
  readonly source: ByteSource;
  readonly format: FormatHandler;
  readonly layout: MediaLayout;
}

/**
 * Finds the format of a source from its first bytes and reads its layout. Names and claimed media types play no part. Throws
 * `FORMAT_UNKNOWN` where no manifest can be embedded, and what `FormatHandler.readLayout` throws.
 */
export async function readSignableFile(source: ByteSource, signal: AbortSignal): Promise<SignableFile> {
  const format = await recogniseFormat(source, signal);
  if (format === undefined) {
    const head = await readRange(source, 0, Math.min(source.sizeBytes, HEAD_SIZE_BYTES), signal);
    throw formatUnknown(source.name, head);
  }
  return { source, format, layout: await format.readLayout(source, signal) };
}

/**
 * Returns the file ready to be validated by the SDK, which reads files of this host only, and then copied as it was
 * validated: pinned or copied, and with the layout of those very bytes. A file without a manifest is returned as it is.
 */
export async function pinIfSigned(
  file: SignableFile,
  { scratch, signal }: { readonly scratch: ScratchSpace; readonly signal: AbortSignal },
): Promise<SignableFile> {
  if (file.layout.manifest === null) return file;
  const source = await pinnedCopyOf(file.source, scratch, signal);
  const kept = await readSignableFile(source, signal);
  // The operation, its destination and its media type were decided by the first layout.
  if (!isAlike(kept.layout, file.layout)) throw new AppError('SOURCE_CHANGED', { name: source.name });
  return kept;
}

function isAlike(first: MediaLayout, second: MediaLayout): boolean {
  return (
    first.mediaType === second.mediaType &&
    first.hasVideo === second.hasVideo &&
    (first.manifest === null) === (second.manifest === null)
  );
}
