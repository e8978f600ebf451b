import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { MAX_TEXT_BYTES } from '../playlists/limits.ts';

/** Bytes that show whether a file is XML. */
const EXAMINED_BYTES = 64;
const XML_BEGINNING = /^\ufeff?\s*</;
/**
 * Attributes by which subtitles name pictures and other files (TTML2 §9, SMPTE ST 2052-1), under any prefix. Searched in the text:
 * players read what XML parsers refuse.
 */
const ADDRESS = /[\s:](?:backgroundImage|src|href)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
/** An address of something in the text itself, or none. */
const IS_INSIDE = /^(?:#|data:|$)/i;

/** Returns the addresses outside itself that subtitles in XML name, each once; none for any other file. Looks at the first 4 MiB. */
export async function addressesIn(source: ByteSource, signal: AbortSignal): Promise<readonly string[]> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, EXAMINED_BYTES), signal);
  if (!XML_BEGINNING.test(head.toString('utf8'))) return [];
  const bytes = await readRange(source, 0, Math.min(source.sizeBytes, MAX_TEXT_BYTES), signal);
  const found = Array.from(bytes.toString('utf8').matchAll(ADDRESS), ([, first, second]) =>
    (first ?? second ?? '').trim(),
  );
  return [...new Set(found)].filter((address) => !IS_INSIDE.test(address));
}
