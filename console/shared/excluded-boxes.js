// @ts-nocheck
// Written by "npm run docs" from src/formats/isobmff/excluded-boxes.ts: change that.
// BMFF hashes leave out `ftyp` and `mfra` as wholes (C2PA 2.2 §18.7.3): anybody can write into them. Players that look for the
// container of a file by its bytes must find no other one there. Browsers run this module too (`scripts/console-modules.ts`), so
// it uses nothing of Node.

/** Top-level boxes, beside those of C2PA, that a BMFF hash excludes as a whole. */
export const EXCLUDED_TYPES                    = ['ftyp', 'mfra'];

/** Tells whether a BMFF hash excludes every top-level box of this type. */
export function isExcludedType(type        )          {
  return EXCLUDED_TYPES.includes(type);
}

/** Bytes of an excluded box that are looked at; none that is larger holds what its type may hold. */
export const MAX_EXCLUDED_BOX_BYTES = 1024 * 1024;

/** Bytes of a file type: 254 brands, and files have some ten. */
const MAX_FILE_TYPE_BYTES = 1024;

/** Bytes of a header with a size of 32 bits. */
const COMPACT_HEADER_BYTES = 8;

/**
 * Tells whether an excluded box, of which `content` stands behind the header, is what a box of its type is. Its size has 32 bits:
 * players that know no others look for media behind such a header.
 */
export function isOfItsType(
  { type, headerSizeBytes }                                                             ,
  content            ,
  kind                      = 'movie',
)          {
  if (headerSizeBytes !== COMPACT_HEADER_BYTES) return false;
  return type === 'ftyp' ? isFileType(content, kind) : isRandomAccess(content);
}

/** Major brands by which players take a file for another container. */
const OTHER_BRANDS = /^(?:jp2 |jpx |jxl )$/;
/** Brands by which players look for a picture: a movie that has one plays where the major brand is that of sequences. */
const PICTURE_BRANDS = ['avif', 'avis'];
const SEQUENCE_BRAND = 'avis';
const BRAND = /^(?:[ -~]{4}|\0{4})$/;

/** Tells whether a box holds a brand, a version and further brands (ISO/IEC 14496-12 §4.3). */
function isFileType(content            , kind                     )          {
  if (content.length > MAX_FILE_TYPE_BYTES) return false;
  const words = Array.from({ length: Math.ceil(content.length / 4) }, (_, index) => typeAt(content, index * 4));
  const [major = '', , ...others] = words;
  const brands = [major, ...others];
  const showsPicture = major !== SEQUENCE_BRAND && brands.some((brand) => PICTURE_BRANDS.includes(brand));
  if (OTHER_BRANDS.test(major) || (kind === 'movie' && showsPicture)) return false;
  return brands.every((brand) => BRAND.test(brand));
}

/** Tells whether a box holds indexes of fragments and nothing else (ISO/IEC 14496-12 §8.8.9), each with a size of 32 bits. */
function isRandomAccess(content            )          {
  const view = viewOf(content);
  for (let offset = 0, sizeBytes = 0; offset < content.length; offset += sizeBytes) {
    if (content.length - offset < COMPACT_HEADER_BYTES) return false;
    sizeBytes = view.getUint32(offset);
    if (sizeBytes < COMPACT_HEADER_BYTES || sizeBytes > content.length - offset) return false;
    const type = typeAt(content, offset + 4);
    const own = content.subarray(offset + COMPACT_HEADER_BYTES, offset + sizeBytes);
    if (!(type === 'tfra' ? isIndex(own) : type === 'mfro' && own.length === 8)) return false;
  }
  return true;
}

/** Bytes of an index before its entries: version and flags, track, lengths of numbers, and the count of entries. */
const INDEX_HEAD_BYTES = 16;

/** Tells whether an index (§8.8.10, behind its header) holds its entries in the order of their fragments, and nothing else. */
function isIndex(index            )          {
  if (index.length < INDEX_HEAD_BYTES) return false;
  const view = viewOf(index);
  const [versionAndFlags, lengths, count] = [view.getUint32(0), view.getUint32(8), view.getUint32(12)];
  if ((versionAndFlags !== 0 && versionAndFlags !== 0x01000000) || lengths >> 6 !== 0) return false;
  const isWide = versionAndFlags !== 0;
  const numbersBytes = [lengths >> 4, lengths >> 2, lengths].reduce((sum, bits) => sum + (bits & 3) + 1, 0);
  const placeAt = isWide ? 8 : 4;
  const entryBytes = 2 * placeAt + numbersBytes;
  if (index.length !== INDEX_HEAD_BYTES + count * entryBytes) return false;
  const at = (offset        )         => (isWide ? view.getBigUint64(offset) : BigInt(view.getUint32(offset)));
  for (let entry = INDEX_HEAD_BYTES + entryBytes; entry < index.length; entry += entryBytes) {
    if (at(entry + placeAt) < at(entry - entryBytes + placeAt)) return false;
  }
  return true;
}

function viewOf({ buffer, byteOffset, byteLength }            )           {
  return new DataView(buffer, byteOffset, byteLength);
}

function typeAt(bytes            , offset        )         {
  return String.fromCharCode(...bytes.subarray(offset, offset + 4));
}
