import { AppError } from '#errors/app-error.ts';
import { hlsAttribute } from './hls-attributes.ts';

const REFERENCE = /\{\$([\w-]+)\}/g;

/** Characters that all variables of one playlist may come to when they are written out. */
const WRITTEN_OUT_MAX_LENGTH = 16 * 1024 * 1024;

/**
 * The lines of a playlist with the variables written out that it defines itself (EXT-X-DEFINE with NAME and VALUE, RFC
 * 8216bis §4.3). What a variable stands for that comes from another playlist, or with the player's request, is not known
 * here: an address made of one is refused.
 */
export function writeOutVariables(path: string, lines: readonly string[]): readonly string[] {
  if (!lines.some((line) => line.includes('{$'))) return lines;
  const values = new Map<string, string>();
  let length = 0;
  const writeOut = (reference: string, name: string): string => {
    const value = values.get(name) ?? reference;
    length += value.length;
    if (length <= WRITTEN_OUT_MAX_LENGTH) return value;
    const what = 'characters in variables, written out';
    throw new AppError('PLAYLIST_TOO_LARGE', { playlist: path, what, count: length, limit: WRITTEN_OUT_MAX_LENGTH });
  };
  return lines.map((line, index) => {
    const written = line.replace(REFERENCE, writeOut);
    const name = line.startsWith('#EXT-X-DEFINE:') ? hlsAttribute(line, 'NAME') : undefined;
    if (name !== undefined) values.set(name, hlsAttribute(line, 'VALUE') ?? '');
    const address = line.startsWith('#') ? (hlsAttribute(written, 'URI') ?? '') : written;
    if (address.search(REFERENCE) !== -1) throw unknownVariable(path, index + 1);
    return written;
  });
}

function unknownVariable(playlist: string, line: number): AppError {
  return new AppError('PLAYLIST_UNSUPPORTED', {
    playlist,
    line,
    feature: 'An address made of variables that the playlist does not define itself (EXT-X-DEFINE)',
    remedy: 'Write the address out.',
  });
}
