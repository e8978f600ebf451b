/** Address of the playlist that parsers are told, at the root of a server: addresses from the root lead into the folder. */
export const PLAYLIST_PATH = 'playlist';
export const PLAYLIST_URL = `http://folder.invalid/${PLAYLIST_PATH}`;

/** The parts that a parser finds in a playlist that plays, each in one line of text, in playback order. */
export type Reading = MediaReading | MultivariantReading | MpdReading;

interface MediaReading {
  readonly kind: 'media';
  /** Each with its init segment. */
  readonly segments: readonly string[];
}

interface MultivariantReading {
  readonly kind: 'multivariant';
  readonly variants: readonly string[];
  /** Type, group and address of the renditions that have an address. */
  readonly renditions: readonly string[];
  readonly keyFrames: readonly string[];
}

interface MpdReading {
  readonly kind: 'mpd';
  /** The representations in the order of the document. */
  readonly representations: readonly { readonly id: string; readonly segments: readonly string[] }[];
  /** Files beside them that some players count as segments: the judge wants each to be the fragment that was signed there. */
  readonly adjacent?: ReadonlySet<string>;
}

/** Bytes of a file. */
export interface ReadPart {
  readonly url: string;
  /** Undefined for the whole file. */
  readonly range?: { readonly offset: number; readonly length: number } | undefined;
}

/** Writes a segment and its init segment in one line. */
export function describeSegment(segment: ReadPart, init: ReadPart | undefined): string {
  return init === undefined ? describePart(segment) : `${describePart(segment)} after ${describePart(init)}`;
}

/** Writes bytes of a file in one line. */
export function describePart({ url, range }: ReadPart): string {
  const path = pathOf(url);
  return range === undefined ? path : `${path} [${range.offset}, +${range.length}]`;
}

/** Returns the path that a server looks up for an address, relative to the playlist's as a browser resolves it. */
export function pathOf(address: string): string {
  const url = URL.parse(address, PLAYLIST_URL);
  if (url === null) return `no address: ${address}`;
  const path = url.origin === new URL(PLAYLIST_URL).origin ? url.pathname : `${url.origin}${url.pathname}`;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
