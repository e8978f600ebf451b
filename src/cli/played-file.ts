import { closeSync, constants, openSync, readdirSync, statSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { sourceError } from './find-inputs.ts';

/** Playlists that a publication may be entered by: the first that is there, else the only one in its folder. */
const ENTRIES = ['master.m3u8', 'main.m3u8', 'index.m3u8', 'manifest.m3u8', 'playlist.m3u8'];

/**
 * Returns the absolute path of the file that is played: the one that was named, or the playlist in a folder. Throws `SOURCE_…`,
 * `NOTHING_TO_PLAY` or `DASH_NOT_PLAYED`.
 */
export function playedFile(path: string): string {
  const given = resolve(path);
  try {
    const file = statSync(given).isDirectory() ? playlistIn(given) : given;
    if (file === undefined) throw new AppError('NOTHING_TO_PLAY', { path, names: ENTRIES });
    if (extname(file).toLowerCase() === '.mpd') throw new AppError('DASH_NOT_PLAYED', { path });
    closeSync(openSync(file, constants.O_RDONLY | constants.O_NONBLOCK));
    return file;
  } catch (error) {
    throw sourceError(path, error);
  }
}

function playlistIn(folder: string): string | undefined {
  const playlists = readdirSync(folder).filter((name) => extname(name).toLowerCase() === '.m3u8');
  const name =
    ENTRIES.find((entry) => playlists.includes(entry)) ?? (playlists.length === 1 ? playlists[0] : undefined);
  return name === undefined ? undefined : join(folder, name);
}
