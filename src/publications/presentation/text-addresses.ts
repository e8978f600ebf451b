import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { MAX_TEXT_BYTES } from '../playlists/limits.ts';

const XML_BEGINNING = /^\ufeff?\s*</;
/**
 * Attributes by which subtitles name pictures and other files (TTML2 §9, SMPTE ST 2052-1), under any prefix. Searched in the text:
 * players read what XML parsers refuse.
 */
const ADDRESS = /[\s:](?:backgroundImage|src|href)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
/** An address of something in the text itself or in its fragment (ISO/IEC 14496-30 §5.6), or none. */
const IS_INSIDE = /^(?:#|data:|urn:mpeg:14496-30:subs:|$)/i;

/** Returns the addresses outside itself that subtitles in XML name, each once; none for any other file. Looks at the first 4 MiB. */
export async function addressesIn(source: ByteSource, signal: AbortSignal): Promise<readonly string[]> {
  const text = await startOf(source, signal);
  return XML_BEGINNING.test(text) ? addressesNamedBy(text) : [];
}

/** Does the same for a fragment of subtitles in XML (`stpp`), which has boxes before them. */
export async function addressesInFragment(source: ByteSource, signal: AbortSignal): Promise<readonly string[]> {
  return addressesNamedBy(await startOf(source, signal));
}

async function startOf(source: ByteSource, signal: AbortSignal): Promise<string> {
  return (await readRange(source, 0, Math.min(source.sizeBytes, MAX_TEXT_BYTES), signal)).toString('utf8');
}

function addressesNamedBy(text: string): readonly string[] {
  const found = Array.from(text.matchAll(ADDRESS), ([, first, second]) => (first ?? second ?? '').trim());
  return [...new Set(found)].filter((address) => !IS_INSIDE.test(address));
}
