import { AppError } from '#errors/app-error.ts';
import type { PlaylistDocument } from '../publication.ts';

/** Refuses playlists whose segments cannot be signed as they are: those encrypted as a whole, and those named in parts. */
export function refuseUnsignable(playlists: readonly PlaylistDocument[]): void {
  for (const playlist of playlists) {
    if (playlist.kind === 'hls-multivariant') continue;
    for (const [index, line] of playlist.text.split('\n').entries()) {
      const place = { playlist: playlist.path, line: index + 1 };
      const method = wholeEncryptionIn(line);
      if (method !== null) {
        throw new AppError('PLAYLIST_UNSUPPORTED', {
          ...place,
          feature: `A segment that is encrypted as a whole (${method})`,
          remedy: 'Use sample encryption (SAMPLE-AES, SAMPLE-AES-CTR, CENC), or sign before encrypting.',
        });
      }
      if (namesParts(line)) {
        throw new AppError('PLAYLIST_UNSUPPORTED', {
          ...place,
          feature: 'A low-latency playlist of partial segments',
          remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
        });
      }
    }
  }
}

/** How a line says that segments are encrypted as a whole, in HLS or in DASH (ISO/IEC 23009-4); null where it does not. */
export function wholeEncryptionIn(line: string): string | null {
  return (
    (/^\s*#EXT-X-KEY:.*(METHOD=AES-[\w-]+)/.exec(line) ?? /<(?:\w+:)?(SegmentEncryption)\b/.exec(line))?.[1] ?? null
  );
}

/** Whether a line of a low-latency playlist names a part of a segment, which others name whole. */
export function namesParts(line: string): boolean {
  return /^\s*#EXT-X-(?:PART|PRELOAD-HINT):/.test(line);
}
