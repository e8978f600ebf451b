import { z } from 'zod';
import { decodeCbor, onlyCbor, onlyChild, parseJumbf } from './jumbf.ts';

/** Top-level boxes that a BMFF hash may leave out: what they hold is never played (C2PA 2.2 §18.7.3). */
const HARMLESS_BOXES = /^\/(?:ftyp|mfra|free|skip)$/;
/** The headers of the containers around an embedded manifest, which it is divided into in pictures. */
const MIN_CONTAINER_BYTES = 1024;
const MAX_CONTAINER_SHARE = 1 / 16;

const dataHash = z.object({ exclusions: z.array(z.object({ start: z.number(), length: z.number() })).nullish() });
const bmffHash = z.object({
  exclusions: z.array(z.looseObject({ xpath: z.string(), data: z.unknown(), subset: z.unknown() })),
  merkle: z.array(z.unknown()).nullish(),
});

/**
 * Returns the status code for a manifest that leaves out more of its file than itself (C2PA 2.2 §15.12): changes there do not
 * show. The readers do not report it. Null where it does not, or where its binding cannot be read here.
 */
export function extraExclusionCode(store: Uint8Array, isDetached: boolean): string | null {
  const manifest = parseJumbf(Buffer.from(store.buffer, store.byteOffset, store.byteLength))?.children.at(-1);
  const assertions = onlyChild(manifest, 'c2pa.assertions')?.children ?? [];
  const binding = assertions.find(({ label }) => label.startsWith('c2pa.hash.'));
  if (binding === undefined) return null;
  const content = decodeCbor(onlyCbor(binding));
  if (binding.label === 'c2pa.hash.data') {
    const excludedBytes = (dataHash.safeParse(content).data?.exclusions ?? []).reduce(
      (sum, { length }) => sum + length,
      0,
    );
    const ownBytes = isDetached ? 0 : store.length + Math.max(MIN_CONTAINER_BYTES, store.length * MAX_CONTAINER_SHARE);
    return excludedBytes > ownBytes ? 'assertion.dataHash.additionalExclusionsPresent' : null;
  }
  if (!binding.label.startsWith('c2pa.hash.bmff')) return null;
  const { exclusions = [], merkle } = bmffHash.safeParse(content).data ?? {};
  const hidesMedia = exclusions.some(({ xpath, data, subset }) => {
    if (HARMLESS_BOXES.test(xpath)) return false;
    // A Merkle tree binds what is left out of the media, and some fields hold positions, which change.
    if (subset != null) return xpath === '/mdat' && (merkle ?? []).length === 0;
    return xpath !== '/uuid' || !Array.isArray(data) || data.length === 0;
  });
  return hidesMedia ? 'assertion.bmffHash.additionalExclusionsPresent' : null;
}
