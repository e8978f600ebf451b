const PLAYLIST = /\.(?:m3u8|mpd)$/i;

/** Tells whether a file is a playlist: playlists are committed after everything that they may name. */
export function isPlaylist(path: string): boolean {
  return PLAYLIST.test(path);
}

/** Sorts playlists by depth, the deepest first: a multivariant playlist usually lies above those that it names. */
export function innermostPlaylistFirst(first: string, second: string): number {
  return second.split('/').length - first.split('/').length || (first < second ? -1 : 1);
}
