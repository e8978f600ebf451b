import { boxHeadersIn } from './boxes.ts';

// BMFF hashes leave out `ftyp` and `mfra` as wholes (C2PA 2.2 §18.7.3): anybody can write into them. Players that look for the
// container of a file by its bytes must find no other one there.

/** Top-level boxes, beside those of C2PA, that a BMFF hash excludes as a whole. */
export const EXCLUDED_TYPES: readonly string[] = ['ftyp', 'mfra'];

/** Tells whether a BMFF hash excludes every top-level box of this type. */
export function isExcludedType(type: string): boolean {
  return EXCLUDED_TYPES.includes(type);
}

/** Bytes of an excluded box that are looked at; none that is larger holds what its type may hold. */
export const MAX_EXCLUDED_BOX_BYTES = 1024 * 1024;

/** Bytes of a header with a size of 32 bits. */
const COMPACT_HEADER_BYTES = 8;

/**
 * Tells whether an excluded box, of which `content` stands behind the header, is what a box of its type is. Its size has 32 bits:
 * players that know no others look for media behind such a header.
 */
export function isOfItsType(
  { type, headerSizeBytes }: { readonly type: string; readonly headerSizeBytes: number },
  content: Buffer,
): boolean {
  if (headerSizeBytes !== COMPACT_HEADER_BYTES) return false;
  return type === 'ftyp' ? isFileType(content) : isRandomAccess(content);
}

/** Major brands of still pictures: players take a file of one for another container. */
const STILL_BRANDS = /^(?:jp2 |jpx |jxl )$/;
const BRAND = /^(?:[ -~]{4}|\0{4})$/;

/** Tells whether a box holds a brand, a version and further brands (ISO/IEC 14496-12 §4.3). */
function isFileType(content: Buffer): boolean {
  const words = Array.from({ length: Math.ceil(content.length / 4) }, (_, index) =>
    content.toString('latin1', index * 4, index * 4 + 4),
  );
  const [major = '', , ...others] = words;
  return BRAND.test(major) && !STILL_BRANDS.test(major) && others.every((brand) => BRAND.test(brand));
}

/** Tells whether a box holds indexes of fragments and nothing else (ISO/IEC 14496-12 §8.8.9). */
function isRandomAccess(content: Buffer): boolean {
  let end = 0;
  for (const { type, offset, sizeBytes, sizeForm } of boxHeadersIn(content)) {
    const own = content.subarray(offset + COMPACT_HEADER_BYTES, offset + sizeBytes);
    const isKnown = type === 'tfra' ? isIndex(own) : type === 'mfro' && own.length === 8;
    if (!isKnown || sizeForm !== 'compact') return false;
    end = offset + sizeBytes;
  }
  return end === content.length;
}

/** Bytes of an index before its entries: version and flags, track, lengths of numbers, and the count of entries. */
const INDEX_HEAD_BYTES = 16;

/** Tells whether an index (§8.8.10, behind its header) holds its entries, sorted by time and place, and nothing else. */
function isIndex(index: Buffer): boolean {
  if (index.length < INDEX_HEAD_BYTES) return false;
  const [versionAndFlags, lengths, count] = [index.readUInt32BE(0), index.readUInt32BE(8), index.readUInt32BE(12)];
  if ((versionAndFlags !== 0 && versionAndFlags !== 0x01000000) || lengths >> 6 !== 0) return false;
  const widthBytes = versionAndFlags === 0 ? 4 : 8;
  const numbersBytes = [lengths >> 4, lengths >> 2, lengths].reduce((sum, bits) => sum + (bits & 3) + 1, 0);
  const strideBytes = 2 * widthBytes + numbersBytes;
  if (index.length !== INDEX_HEAD_BYTES + count * strideBytes) return false;
  const entries = Array.from({ length: count }, (_, entry) => INDEX_HEAD_BYTES + entry * strideBytes);
  const isSorted = (at: number): boolean =>
    entries.every((start, entry) => {
      const before = entries[entry - 1] ?? start;
      return index.compare(index, before + at, before + at + widthBytes, start + at, start + at + widthBytes) >= 0;
    });
  return isSorted(0) && isSorted(widthBytes);
}
