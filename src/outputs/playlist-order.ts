const PLAYLIST = /\.(?:m3u8|mpd)$/i;

/** Whether a file is what players start from: it is delivered after everything that it may name. */
export function isPlaylist(path: string): boolean {
  return PLAYLIST.test(path);
}

/** A playlist of renditions lies above the playlists that it names, as a rule, and comes after them. */
export function innermostFirst(first: string, second: string): number {
  return second.split('/').length - first.split('/').length || (first < second ? -1 : 1);
}
