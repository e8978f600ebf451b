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

/** Tells whether what stands behind the header of an excluded box is what a box of its type holds. */
export function isOfItsType(type: string, content: Buffer): boolean {
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
    if ((type !== 'tfra' && type !== 'mfro') || sizeForm !== 'compact') return false;
    end = offset + sizeBytes;
  }
  return end === content.length;
}
