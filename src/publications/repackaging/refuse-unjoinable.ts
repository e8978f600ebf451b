import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { PlaylistDocument } from '../publication.ts';
import type { HlsMedia } from '../reading/hls-playlist.ts';
import { childrenOf } from '../reading/xml-element.ts';
import type { ExistingPublication, ExistingRendition } from './existing-publication.ts';
import { refusal } from './repackaging-refusal.ts';

/**
 * Refuses what cannot be joined to one film and cut anew: what may still grow, encrypted segments, breaks in time, ranges
 * that are not there.
 */
export function refuseUnjoinable({ playlists, renditions }: ExistingPublication, folder: SourceFolder): void {
  refuseRangesPastEnd(renditions, folder);
  for (const playlist of playlists) {
    if (renditions.some(({ playlist: path }) => path === playlist.path)) refuseLive(playlist);
    if (playlist.kind === 'hls-media' && !playlist.iFramesOnly) refuseHls(playlist);
    if (playlist.kind === 'mpd' && childrenOf(playlist.root, 'Period').length > 1) {
      throw refusal(playlist.path, 1, 'It has several periods, which cannot be told from several films');
    }
    if (playlist.kind === 'mpd' && /<(?:\w+:)?ContentProtection\b/.test(playlist.text)) {
      throw refusal(
        playlist.path,
        1,
        'Its media are encrypted (ContentProtection); package them before they are encrypted',
      );
    }
  }
}

/** Its line is not known any more; the file's name finds it. */
function refuseRangesPastEnd(renditions: readonly ExistingRendition[], { files }: SourceFolder): void {
  const sizes = new Map(files.map(({ path, sizeBytes }) => [path, sizeBytes]));
  for (const { playlist, parts } of renditions) {
    for (const { path: file, range } of parts) {
      const sizeBytes = sizes.get(file) ?? 0;
      const end = range === null ? 0 : range.offset + range.length;
      if (end > sizeBytes) throw new AppError('BYTE_RANGE_PAST_END', { playlist, line: 1, file, end, sizeBytes });
    }
  }
}

/** A playlist that may still grow is no film yet. Another one may say of the same segments that it has ended. */
function refuseLive(playlist: PlaylistDocument): void {
  const problem = whyLive(playlist);
  if (problem === null) return;
  const line = playlist.kind === 'mpd' ? 1 : playlist.text.trimEnd().split('\n').length;
  throw refusal(playlist.path, line, `It ${problem}, and what is still growing cannot be packaged`);
}

/** By what a playlist shows that it may still grow, as a predicate; null where it is complete. */
export function whyLive(playlist: PlaylistDocument): string | null {
  if (playlist.kind === 'mpd') {
    return playlist.root.attributes.get('type') === 'dynamic' ? 'is live (type="dynamic")' : null;
  }
  if (playlist.kind !== 'hls-media' || /^#EXT-X-ENDLIST\s*$/m.test(playlist.text)) return null;
  return 'has no end (#EXT-X-ENDLIST), as live playlists';
}

function refuseHls({ path, text, segments }: HlsMedia): void {
  for (const [index, line] of text.split('\n').entries()) {
    const problem = problemOf(line.trim());
    if (problem !== null) throw refusal(path, index + 1, problem);
  }
  const [first] = segments;
  const changed = segments.find(
    ({ map }) => map?.uri !== first?.map?.uri || map?.range?.offset !== first?.map?.range?.offset,
  );
  if (changed !== undefined) {
    throw refusal(
      path,
      changed.map?.line ?? changed.line,
      'Its init segment changes midway, which one rendition cannot',
    );
  }
}

function problemOf(line: string): string | null {
  if (/^#EXT-X-KEY:/.test(line) && !/METHOD=NONE\b/.test(line)) {
    return 'Its segments are encrypted (#EXT-X-KEY); package the media before they are encrypted';
  }
  if (line === '#EXT-X-DISCONTINUITY') {
    return 'Its time breaks off here (#EXT-X-DISCONTINUITY), as where advertising was put in; package the parts as folders of their own';
  }
  return null;
}
