import { warningEntry } from './entry.ts';
import { listNames, type NameSample } from './named-files.ts';

/** What happens to a folder that is a publication already, as the end of a sentence. */
const TREATMENTS = {
  copied: 'It was carried through as it is',
  repackaged: 'Its segments were made anew, with the same packets',
  signed: 'It was signed as it is',
} as const;
export type PublicationTreatment = keyof typeof TREATMENTS;

/** One kind of finding about a rendition of a signed publication, or about renditions that are not there. */
interface FoundInPublication {
  readonly title: string;
  readonly finding: string;
  readonly init: string | null;
  /** The first fragments that it is about, by path, and the places of the first that are missing. */
  readonly parts: readonly string[];
  readonly locations: readonly number[];
  readonly count: number;
  readonly problem: string;
}

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
    return `The folder is a publication already: ${names}${more} ${verb} ${renditions} of ${segments}. ${TREATMENTS[treatment]}. Set params.existing to have this without a warning.`;
  }),
  PUBLICATION_MAY_GROW: warningEntry<{ playlist: string; problem: string }>(
    ({ playlist, problem }) => `"${playlist}" ${problem}: what is added to the folder later is no part of this.`,
  ),
  PUBLICATION_ALTERED: warningEntry<FoundInPublication>(({ title, init, problem }) =>
    init === null
      ? `The signed publication "${title}" is not complete: ${problem}.`
      : `The signed publication "${title}" is not as it was signed, in the rendition of "${init}": ${problem}.`,
  ),
  PUBLICATION_NOT_VERIFIED: warningEntry<FoundInPublication>(
    ({ title, init, problem }) =>
      `The signed publication "${title}" could not be verified completely, in the rendition of "${init}": ${problem}. That no fragment is missing or elsewhere is not known.`,
  ),
  PUBLICATION_FINDINGS_OMITTED: warningEntry<{ title: string; count: number }>(
    ({ title, count }) => `There are ${count} more findings about the signed publication "${title}".`,
  ),
  PUBLICATION_MANIFESTS_DIFFER: warningEntry<{ title: string; manifestCount: number; inits: readonly string[] }>(
    ({ title, manifestCount, inits }) =>
      `The init segments of "${title}" carry ${manifestCount} different manifests; those of ${inits.map((path) => `"${path}"`).join(', ')}${manifestCount > inits.length + 1 ? ' and others' : ''} are attached as components.`,
  ),
  FRAGMENTS_UNSIGNED: warningEntry<NameSample>(
    (files) => `Carried through unsigned, because no playlist names them: ${listNames(files)}.`,
  ),
  FILES_NOT_CARRIED: warningEntry<NameSample>(
    (files) =>
      `Left out of the output: ${listNames(files)}. Carried through are files in the folders of the publication's playlists and segments, and files that a playlist names; hidden files and links are not.`,
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
