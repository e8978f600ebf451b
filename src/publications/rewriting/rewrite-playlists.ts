import type { SourceFolder } from '#bytes/source-folder.ts';
import { type Publication, partKey } from '../publication.ts';
import { FolderIndex } from '../reading/folder-index.ts';
import type { HlsMedia } from '../reading/hls-playlist.ts';
import type { SignedParts } from '../signing/signed-part.ts';
import { type AddedRates, addedRates, type GrownSegment, NOTHING_ADDED } from './added-rates.ts';
import { rangeMover } from './moved-range.ts';
import { type MoveRange, rewriteHlsMedia } from './rewrite-hls-media.ts';
import { rewriteHlsMultivariant } from './rewrite-hls-multivariant.ts';
import { rewriteMpd } from './rewrite-mpd.ts';

/**
 * Rewrites the publication's playlists for its signed parts: declared bandwidths rise by what was added, and byte ranges
 * that became files are named as files. Returns the whole text by path of those that change; nothing else in them does.
 */
export async function rewritePlaylists(
  { playlists }: Publication,
  folder: SourceFolder,
  parts: SignedParts,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const index = new FolderIndex(folder);
  const moveRange = rangeMover(folder, parts, signal);
  const rewritten = new Map<string, string>();
  const rates = new Map<string, AddedRates>();
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-media') continue;
    rates.set(playlist.path, addedRates(await grownSegments(playlist, index, parts, moveRange)));
    rewritten.set(playlist.path, await rewriteHlsMedia(playlist, index, parts, moveRange));
  }
  for (const playlist of playlists) {
    if (playlist.kind === 'mpd') rewritten.set(playlist.path, rewriteMpd(playlist, index, parts));
    if (playlist.kind !== 'hls-multivariant') continue;
    rewritten.set(
      playlist.path,
      rewriteHlsMultivariant(playlist, index, (path) => rates.get(path) ?? NOTHING_ADDED),
    );
  }
  for (const { path, text } of playlists) if (rewritten.get(path) === text) rewritten.delete(path);
  return rewritten;
}

async function grownSegments(
  { path: playlist, segments }: HlsMedia,
  index: FolderIndex,
  parts: SignedParts,
  moveRange: MoveRange,
): Promise<GrownSegment[]> {
  const base = index.baseOf(playlist);
  const grown: GrownSegment[] = [];
  for (const { uri, line, range, durationSeconds } of segments) {
    const path = index.locate(base, uri, { playlist, line });
    const part = parts.get(partKey(index.partAt(path, range)));
    const moved = part === undefined && range !== null ? await moveRange(path, range) : undefined;
    const movedBytes = moved === undefined || range === null ? 0 : moved.length - range.length;
    grown.push({ durationSeconds, addedBytes: part?.addedBytes ?? movedBytes });
  }
  return grown;
}
