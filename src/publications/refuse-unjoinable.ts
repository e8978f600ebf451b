import { type SourceFolder, sizesIn } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { ExistingPublication, ExistingRendition } from './existing-publication.ts';
import { attributeOf, type HlsLine } from './playlists/hls-lines.ts';
import type { HlsMedia, PlaylistDocument } from './playlists/playlist-document.ts';
import { isOpen } from './playlists/read-playlists.ts';
import { childrenOf, findElement } from './playlists/xml-element.ts';

/**
 * Throws `PUBLICATION_NOT_REPACKAGED` for a publication that cannot be joined and segmented again: live playlists,
 * encrypted segments, discontinuities.
 */
export function refuseUnjoinable({ playlists, renditions }: ExistingPublication): void {
  for (const playlist of playlists) {
    if (renditions.some(({ playlist: path }) => path === playlist.path)) refuseLive(playlist);
    if (playlist.kind === 'hls-media' && !playlist.iFramesOnly) refuseHls(playlist);
    if (playlist.kind === 'mpd' && childrenOf(playlist.root, 'Period').length > 1) {
      throw refusal(playlist.path, 1, 'It has several periods, which cannot be told from several films');
    }
    if (playlist.kind === 'mpd' && findElement(playlist.root, 'ContentProtection') !== undefined) {
      const problem = 'Its media are encrypted (ContentProtection); package them before they are encrypted';
      throw refusal(playlist.path, 1, problem);
    }
  }
}

/** Throws `BYTE_RANGE_PAST_END`. The line of the range is no longer known; the file's name identifies it. */
export function refuseRangesPastEnd(renditions: readonly ExistingRendition[], folder: SourceFolder): void {
  const sizes = sizesIn(folder);
  for (const { playlist, parts } of renditions) {
    for (const { path: file, range } of parts) {
      const sizeBytes = sizes.get(file) ?? 0;
      const end = range === null ? 0 : range.offset + range.length;
      if (end > sizeBytes) throw new AppError('BYTE_RANGE_PAST_END', { playlist, line: 1, file, end, sizeBytes });
    }
  }
}

/** Refuses a live playlist. Another playlist may state of the same segments that they are complete. */
function refuseLive(playlist: PlaylistDocument): void {
  const problem = whyLive(playlist);
  if (problem === null) return;
  const line = playlist.kind === 'mpd' ? 1 : playlist.text.trimEnd().split('\n').length;
  throw refusal(playlist.path, line, `It ${problem}, and what is still growing cannot be packaged`);
}

/** Describes why a playlist counts as live, as a predicate of a sentence; null where it is complete. */
export function whyLive(playlist: PlaylistDocument): string | null {
  if (!isOpen(playlist)) return null;
  return playlist.kind === 'mpd' ? 'is live (type="dynamic")' : 'has no end (#EXT-X-ENDLIST), as live playlists';
}

function refuseHls({ path, lines, segments }: HlsMedia): void {
  for (const line of lines) {
    const problem = problemOf(line);
    if (problem !== null) throw refusal(path, line.line, problem);
  }
  const [first] = segments;
  const changed = segments.find(
    ({ map }) => map?.uri !== first?.map?.uri || map?.range?.offset !== first?.map?.range?.offset,
  );
  if (changed === undefined) return;
  const problem = 'Its init segment changes midway, which one rendition cannot';
  throw refusal(path, changed.map?.line ?? changed.line, problem);
}

function problemOf(line: HlsLine): string | null {
  if (line.name === 'EXT-X-KEY' && attributeOf(line, 'METHOD') !== 'NONE') {
    return 'Its segments are encrypted (#EXT-X-KEY); package the media before they are encrypted';
  }
  if (line.name === 'EXT-X-DISCONTINUITY') {
    return 'Its time breaks off here (#EXT-X-DISCONTINUITY), as where advertising was put in; package the parts as folders of their own';
  }
  return null;
}

/** Makes the error for a publication that cannot be packaged again; `problem` is a sentence. */
export function refusal(playlist: string, line: number, problem: string): AppError {
  return new AppError('PUBLICATION_NOT_REPACKAGED', { playlist, line, problem });
}
