import type { FormatHandler } from './format-handler.ts';

/** Every format the service can sign. The order matters only where two could match the same bytes. */
export const formats: readonly FormatHandler[] = [];

/** The handler for a file that starts with `head`, or undefined. */
export function formatOf(head: Uint8Array): FormatHandler | undefined {
  return formats.find((format) => format.matches(head));
}
