import { warningEntry } from './entry.ts';
import { listNames, type NameSample } from './named-files.ts';

/** What happens to a folder that is a publication already, as the end of a sentence. */
const TREATMENTS = {
  copied: 'It was carried through as it is',
  repackaged: 'Its segments were made anew, with the same packets',
  signed: 'It was signed as it is',
} as const;
export type PublicationTreatment = keyof typeof TREATMENTS;

/** What to know of a publication that was read: what it is, and what of it is not signed or does not play. */
export const publicationWarnings = {
  PUBLICATION_FOUND: warningEntry<{
    playlists: readonly string[];
    playlistCount: number;
    renditionCount: number;
    segments: string;
    treatment: PublicationTreatment;
  }>(({ playlists, playlistCount, renditionCount, segments, treatment }) => {
    const names = playlists.map((path) => `"${path}"`).join(', ');
    const more = playlistCount > playlists.length ? ', …' : '';
    const renditions = renditionCount === 1 ? 'a rendition' : `${renditionCount} renditions`;
    const verb = playlistCount === 1 ? 'names' : 'name';
    return `The folder is a publication already: ${names}${more} ${verb} ${renditions} of ${segments}. ${TREATMENTS[treatment]}.`;
  }),
  PUBLICATION_MAY_GROW: warningEntry<{ playlist: string; problem: string }>(
    ({ playlist, problem }) => `"${playlist}" ${problem}: what is added to the folder later is no part of this.`,
  ),
  FRAGMENTS_UNSIGNED: warningEntry<NameSample>(
    (files) => `Carried through unsigned, because no playlist names them: ${listNames(files)}.`,
  ),
  TEXT_SEGMENTS_UNSIGNED: warningEntry<{ playlist: string }>(
    ({ playlist }) => `The text segments of "${playlist}" cannot carry a manifest; they were carried through unsigned.`,
  ),
  BYTE_RANGE_SHORTENED: warningEntry<{ file: string }>(
    ({ file }) =>
      `A playlist names one byte more of "${file}" than there is; its last byte range was taken to end with the file, as servers do.`,
  ),
  PLAYLIST_BROKEN_BY_SIGNING: warningEntry<{ playlist: string; file: string }>(
    ({ playlist, file }) =>
      `"${playlist}" names byte ranges of "${file}" that became files of their own; it does not play any more.`,
  ),
};
