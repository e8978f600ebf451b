import { extname } from 'node:path';

/** The media types of what outputs hold, by extension, as players and browsers look for them. */
const CONTENT_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '.mp4': 'video/mp4',
    '.m4v': 'video/mp4',
    '.mov': 'video/quicktime',
    '.qt': 'video/quicktime',
    '.3gp': 'video/3gpp',
    '.3g2': 'video/3gpp2',
    '.m4a': 'audio/mp4',
    '.mp3': 'audio/mpeg',
    '.wav': 'audio/wav',
    '.flac': 'audio/flac',
    '.aac': 'audio/aac',
    '.mkv': 'video/matroska',
    '.webm': 'video/webm',
    '.mxf': 'application/mxf',
    '.avi': 'video/x-msvideo',
    // Segments: RFC 8216 and ISO/IEC 23009-1, annex C, name the types; players go by the playlist.
    '.m3u8': 'application/vnd.apple.mpegurl',
    '.mpd': 'application/dash+xml',
    '.m4s': 'video/iso.segment',
    '.cmfv': 'video/mp4',
    '.cmfa': 'audio/mp4',
    '.cmft': 'application/mp4',
    '.ts': 'video/mp2t',
    '.vtt': 'text/vtt',
    '.webvtt': 'text/vtt',
    '.ttml': 'application/ttml+xml',
    '.srt': 'application/x-subrip',
    '.jpg': 'image/jpeg',
    '.jpeg': 'image/jpeg',
    '.png': 'image/png',
    '.webp': 'image/webp',
    '.c2pa': 'application/c2pa',
    '.json': 'application/json',
    '.xml': 'application/xml',
    '.txt': 'text/plain; charset=utf-8',
    '.html': 'text/html; charset=utf-8',
  }),
);

/** Returns the `Content-Type` of an output, by the extension of its path. */
export function contentTypeOf(path: string): string {
  return CONTENT_TYPES.get(extname(path).toLowerCase()) ?? 'application/octet-stream';
}
