import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { type FormatHandler, HEAD_SIZE_BYTES, LONG_HEAD_SIZE_BYTES } from './format-handler.ts';
import { id3 } from './id3/id3.ts';
import { isobmff } from './isobmff/isobmff.ts';
import { riff } from './riff/riff.ts';

/** Every format the service can sign. The order matters only where two could match the same bytes. */
export const formats: readonly FormatHandler[] = [isobmff, riff, id3];

/** The handler for a file that starts with `head`, or undefined. */
export function formatOf(head: Uint8Array): FormatHandler | undefined {
  return formats.find((format) => format.matches(head));
}

/** The handler for a source by its first bytes, or undefined. More of them are read where few do not tell. */
export async function recogniseFormat(source: ByteSource, signal: AbortSignal): Promise<FormatHandler | undefined> {
  for (const headSizeBytes of [HEAD_SIZE_BYTES, LONG_HEAD_SIZE_BYTES]) {
    const head = await readRange(source, 0, Math.min(source.sizeBytes, headSizeBytes), signal);
    const format = formatOf(head);
    if (format !== undefined || source.sizeBytes <= headSizeBytes) return format;
  }
  return undefined;
}
