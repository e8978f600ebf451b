import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { pinnedCopyOf } from '#bytes/local-copies.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import { type FormatHandler, HEAD_SIZE_BYTES } from '#formats/format-handler.ts';
import { recogniseFormat } from '#formats/formats.ts';
import { unsupportedMediaType } from '#formats/unsupported-containers.ts';
import { assetReadingOf } from '#provenance/official-reader.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import type { DescribedFile } from '../ingredients.ts';
import type { InputContext } from '../operation.ts';

/** The media type of bytes that tell nothing about themselves (RFC 2046 §4.5.1). */
const ANY_BYTES = 'application/octet-stream';

/**
 * Describes a file of any kind by its bytes. Containers that are damaged, or have no handler here, have no layout: a sidecar
 * binds all bytes, whatever they mean. Throws `SIDECAR_SOURCE_SIGNED` for a file that carries a manifest, and the errors
 * of the source.
 */
export async function describeSource(source: ByteSource, { signal, scratch }: InputContext): Promise<DescribedFile> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, HEAD_SIZE_BYTES), signal);
  const still = stillMediaType(head);
  if (still !== null) {
    const { openedPath, localPath } = await pinnedCopyOf(source, scratch, signal);
    const reading = await assetReadingOf({ path: openedPath ?? localPath, mediaType: still }, signal);
    if (reading !== 'none' && !('problem' in reading)) throw alreadySigned(source);
    return withoutLayout(source, still);
  }
  const unsupported = unsupportedMediaType(head);
  if (unsupported !== null) return withoutLayout(source, unsupported);
  const format = await recogniseFormat(source, signal);
  return format === undefined ? withoutLayout(source, ANY_BYTES) : await describeFormat(source, format, signal);
}

async function describeFormat(source: ByteSource, format: FormatHandler, signal: AbortSignal): Promise<DescribedFile> {
  try {
    const layout = await format.readLayout(source, signal);
    if (layout.manifest === null) return { source, layout };
  } catch (error) {
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    return withoutLayout(source, format.mediaType);
  }
  throw alreadySigned(source);
}

function alreadySigned({ name }: ByteSource): AppError {
  return new AppError('SIDECAR_SOURCE_SIGNED', { name });
}

function withoutLayout(source: ByteSource, mediaType: string): DescribedFile {
  return { source, layout: { mediaType, manifest: null, xmp: null } };
}
