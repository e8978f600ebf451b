/** Bytes that tell a format. */
const HEAD_BYTES = 16;

/** The first bytes of the formats that the reader knows, as text of one character a byte. @type {readonly [RegExp, string][]} */
const SIGNATURES = [
  [/^....ftypM4[AB]/s, 'audio/mp4'],
  [/^....ftypqt/s, 'video/quicktime'],
  [/^....ftypavi[fs]/s, 'image/avif'],
  [/^....ftyp(?:hei|mif1)/s, 'image/heif'],
  [/^....(?:ftyp|styp|moov|moof|wide|free|skip|mdat|uuid)/s, 'video/mp4'],
  [/^(?:RIFF|RF64)....WAVE/s, 'audio/wav'],
  [/^RIFF....AVI /s, 'video/avi'],
  [/^RIFF....WEBP/s, 'image/webp'],
  [/^fLaC/s, 'audio/flac'],
  [/^(?:ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff])/s, 'audio/mpeg'],
  [/^\xff\xd8\xff/s, 'image/jpeg'],
  [/^\x89PNG/s, 'image/png'],
  [/^GIF8/s, 'image/gif'],
  [/^(?:II\*\0|MM\0\*)/s, 'image/tiff'],
  [/^%PDF/s, 'application/pdf'],
];

/**
 * Returns the media type of a file by its first bytes, as the reader names it; null for what it does not read.
 * @param {Blob} file
 */
export async function mediaTypeOf(file) {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  const text = String.fromCharCode(...head);
  return SIGNATURES.find(([signature]) => signature.test(text))?.[1] ?? null;
}
