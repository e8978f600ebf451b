const collator = new Intl.Collator('en', { numeric: true });

/** Compares paths in natural order: `seg_2` before `seg_10`. Equal only for equal paths. */
export function compareNaturally(first: string, second: string): number {
  return collator.compare(first, second) || (first < second ? -1 : first > second ? 1 : 0);
}

/** Returns true for the name of a transport stream or packed audio, which cannot carry a manifest. */
export function needsPackaging(path: string): boolean {
  return /\.(ts|m2ts|mts|aac|ac3|ec3|mp3)$/i.test(path);
}

/** Returns true for the name of a picture, as for the seek bar, which is copied unsigned. */
export function isPicture(path: string): boolean {
  return /\.(?:jpe?g|png|webp|gif|avif)(?:\?|$)/i.test(path);
}

/** Returns true for the name of a text segment, which is copied unsigned. */
export function isPlainText(path: string): boolean {
  return /\.(vtt|webvtt|srt|ttml|xml|dfxp)$/i.test(path);
}

/** Returns true for a file whose name, or that of a folder above it, starts with a dot. */
export function isHidden(path: string): boolean {
  return path.startsWith('.') || path.includes('/.');
}

/** Returns the path of the file that servers may send this one in place of (`gzip_static` of nginx, and others alike); null for none. */
export function sentInPlaceOf(path: string): string | null {
  const plain = path.replace(/\.(?:gz|br|zst|deflate)$/i, '');
  return plain === path ? null : plain;
}
