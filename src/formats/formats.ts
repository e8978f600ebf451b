import type { FormatHandler } from './format-handler.ts';
import { id3 } from './id3/id3.ts';
import { isobmff } from './isobmff/isobmff.ts';
import { riff } from './riff/riff.ts';

/** Every format the service can sign. The order matters only where two could match the same bytes. */
export const formats: readonly FormatHandler[] = [isobmff, riff, id3];

/** The handler for a file that starts with `head`, or undefined. */
export function formatOf(head: Uint8Array): FormatHandler | undefined {
  return formats.find((format) => format.matches(head));
}
