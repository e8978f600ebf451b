import type { PlaylistPosition } from '#errors/entry.ts';

/** A finding about one line of a playlist. */
export interface PlaylistFinding extends PlaylistPosition {
  /**
   * `ambiguous`: players may read it differently; `unsigned`: it leads players to media that nobody signed; `unknown`: a name
   * outside the table, which changes nothing that known players play.
   */
  readonly kind: 'ambiguous' | 'unsigned' | 'unknown';
  /** The problem as the end of a sentence; of an unknown name, the name. */
  readonly problem: string;
  /** True where other files of the folder make it so: no signature of the playlist covers it. */
  readonly isOfFolder?: boolean;
}

/** Returns a finding about a line, or about a playlist as a whole, that players may read differently. */
export function ambiguous(playlist: string, problem: string, line = 1) {
  return { playlist, line, kind: 'ambiguous', problem } as const;
}

/** A character at which some players end a line, or that some take for white space. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
export const ODD_CHARACTER = /[\u0000-\u001f\u007f\u0085\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f\u3000\ufeff]/;

/**
 * Text of an address that players and servers read differently (RFC 3986 §2.1, §4.2): a backslash, an encoded slash or end, a
 * percent sign that encodes nothing beside one that does, and a colon in the first segment, but for that of a scheme and a host.
 */
export const ODD_ADDRESS =
  /\\|%(?:2f|5c|00)|%[0-9a-f]{2}.*%(?![0-9a-f]{2})|%(?![0-9a-f]{2}).*%[0-9a-f]{2}|^(?![a-z][a-z0-9+.-]*:\/\/[^/])[^/?#]*:/i;

/** Text that may be an address. */
export const ADDRESS = /:\/\/|^"?(?:\.{0,2}\/|data:|blob:)|\.(?:m3u8?|mpd|mp4|m4[sva]|cmf[vat]|ts|aac|mp3|webm|vtt)\b/i;
