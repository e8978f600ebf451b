import type { MediaPart } from '../media-part.ts';
import type { ListedFragment, RenditionListing } from '../playlists/rendition-listings.ts';
import type { FragmentTimes } from './media-times.ts';

/** Seconds that playlists may cut or move, beside half of the last digit of the times that they state. */
export const MAX_SHIFT_SECONDS = 0.1;

/** A fragment as it was signed: when it plays by its own boxes, and its position in its map. */
export interface SignedTimes extends FragmentTimes {
  readonly position: number;
  /** Tells its manifest from others. */
  readonly manifest: string | number | null;
}

/** Returns the times of a fragment; null where they are not known, or it is not as it was signed. */
export type TimesOf = (init: MediaPart, fragment: MediaPart) => SignedTimes | null;

/** A fragment with its own times. */
export interface TimedFragment extends ListedFragment {
  readonly init: MediaPart;
  readonly own: SignedTimes;
}

/** A problem of a playlist at one of its fragments. */
export interface Problem {
  readonly at: TimedFragment;
  readonly problem: string;
}

/** Returns the fragments of a listing whose times are known. */
export function timed({ init, fragments }: RenditionListing, timesOf: TimesOf): TimedFragment[] {
  if (init === null) return [];
  return fragments.flatMap((fragment) => {
    const own = timesOf(init.part, fragment.part);
    return own === null ? [] : [{ ...fragment, init: init.part, own }];
  });
}

/**
 * Returns why players may decrypt what is not encrypted, as some (GStreamer) do with whole segments, by whatever key they can load, or
 * leave out what they know no key for (dash.js), or end there (hls.js).
 */
export function problemOfKey({ key, own }: TimedFragment): string | null {
  if (key === null || own.isEncrypted) return null;
  return 'it is said to be encrypted, and its media are not';
}
