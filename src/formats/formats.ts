import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import {
  type FormatHandler,
  HEAD_SIZE_BYTES,
  LONG_HEAD_SIZE_BYTES,
  type MediaLayout,
  type ReadableLayout,
} from './format-handler.ts';
import { id3 } from './id3/id3.ts';
import { isobmff } from './isobmff/isobmff.ts';
import { riff } from './riff/riff.ts';
import { describeContainer } from './unsupported-containers.ts';

export { id3, isobmff, riff };

/** Every format that the service can sign. `id3` comes last: it searches for MPEG audio behind other bytes. */
export const formats: readonly FormatHandler[] = [isobmff, riff, id3];

/** Containers of these formats as people call them, for messages. */
export const SIGNABLE_CONTAINERS = formats.flatMap(({ containers }) => containers).join(', ');

/** Name extensions of files that hold audio alone. */
export const AUDIO_ONLY_EXTENSIONS: ReadonlySet<string> = new Set(
  formats.flatMap(({ nameExtensions }) => nameExtensions.audio),
);

/** Name extensions that the audio operation signs. */
export const AUDIO_EXTENSIONS: ReadonlySet<string> = new Set([
  ...AUDIO_ONLY_EXTENSIONS,
  ...formats.flatMap(({ nameExtensions }) => nameExtensions.either),
]);

/** Name extensions that the audio operation refuses, because such files always hold video. */
export const VIDEO_EXTENSIONS: ReadonlySet<string> = new Set(
  formats.flatMap(({ nameExtensions }) => nameExtensions.video),
);

/** Tells whether a file with this name extension can be signed, if its bytes are of that format. */
export function isSignableExtension(extension: string): boolean {
  return AUDIO_EXTENSIONS.has(extension) || VIDEO_EXTENSIONS.has(extension);
}

/** Returns the handler for a file that starts with `head`, or undefined. */
export function formatOf(head: Uint8Array): FormatHandler | undefined {
  return formats.find((format) => format.matches(head));
}

/**
 * Returns the handler for a source by its first bytes, or undefined. Reads a longer head where a short
 * one matches none.
 */
export async function recogniseFormat(source: ByteSource, signal: AbortSignal): Promise<FormatHandler | undefined> {
  for (const headSizeBytes of [HEAD_SIZE_BYTES, LONG_HEAD_SIZE_BYTES]) {
    const head = await readRange(source, 0, Math.min(source.sizeBytes, headSizeBytes), signal);
    const format = formatOf(head);
    if (format !== undefined || source.sizeBytes <= headSizeBytes) return format;
  }
  return undefined;
}

/** Returns the error for a file that matches none of the formats, which says what its first bytes look like. */
export function formatUnknown(name: string, head: Uint8Array, operation: 'sign' | 'verify'): AppError {
  const startsLike = describeContainer(head);
  return new AppError('FORMAT_UNKNOWN', { name, startsLike, containers: SIGNABLE_CONTAINERS, operation });
}

/** Reads the layout of a file that is verified, whether it can be signed or not. Throws what `FormatHandler.readLayout` throws. */
export async function readVerifiableLayout(
  format: FormatHandler,
  source: ByteSource,
  signal: AbortSignal,
): Promise<ReadableLayout> {
  try {
    return await format.readLayout(source, signal);
  } catch (error) {
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    const layout = await format.readUnsignable?.(source, signal);
    if (layout === undefined || layout === null) throw error;
    return layout;
  }
}

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
  const format = await formatOfSource(source, signal);
  return { source, format, layout: await format.readLayout(source, signal) };
}

/** Does the same for a file that is only verified, whether it can be signed or not. */
export async function readVerifiableFile(
  source: ByteSource,
  signal: AbortSignal,
): Promise<{ readonly source: ByteSource; readonly layout: ReadableLayout }> {
  return { source, layout: await readVerifiableLayout(await formatOfSource(source, signal), source, signal) };
}

async function formatOfSource(source: ByteSource, signal: AbortSignal): Promise<FormatHandler> {
  const format = await recogniseFormat(source, signal);
  if (format !== undefined) return format;
  const head = await readRange(source, 0, Math.min(source.sizeBytes, HEAD_SIZE_BYTES), signal);
  throw formatUnknown(source.name, head, 'sign');
}
