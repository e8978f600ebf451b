import {
  entry,
  listNames,
  type NameSample,
  type PlaylistPosition,
  type PublicationTreatment,
  warningEntry,
} from '../entry.ts';

/** Limit on the characters of a name from outside in a message; a longer one is cut. */
const MAX_NAME_CHARACTERS = 300;

const shown = (name: string): string =>
  JSON.stringify(name.length <= MAX_NAME_CHARACTERS ? name : `${name.slice(0, MAX_NAME_CHARACTERS)}…`);

const at = ({ playlist, line }: PlaylistPosition): string => `${shown(playlist)}, line ${line}`;

/** Errors of a folder that is to be signed as a publication. */
export const publicationErrors = {
  PATTERN_INVALID: entry<{ pattern: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ pattern, problem }) => `The pattern ${shown(pattern)} cannot be used: ${problem}.`,
  ),
  PATTERN_NO_MATCH: entry<{ pattern: string; names: readonly string[]; fileCount: number; areEntries?: boolean }>(
    'PROCESSING_FAILED',
    ({ pattern, names, fileCount, areEntries }) =>
      fileCount === 0
        ? `The pattern ${shown(pattern)} matches nothing, because the folder holds no files.`
        : areEntries === true
          ? `The pattern ${shown(pattern)} matches none of the folder's ${fileCount} entries, such as ${names.map(shown).join(', ')}: the playlists that no other playlist names. Correct it, or name the entry that leads there.`
          : `The pattern ${shown(pattern)} matches none of the folder's ${fileCount} files, such as ${names.map(shown).join(', ')}. Correct it: without a slash it stands for whole names, with one for whole paths from the folder on, and capitals count.`,
  ),
  PUBLICATION_TOO_LARGE: entry<{ what: string; count: number; limit: number }>(
    'PROCESSING_FAILED',
    ({ what, count, limit }) =>
      `The publication has ${count} ${what}, more than the ${limit} that are supported. Split it into several folders.`,
  ),
  FRAGMENTS_TOO_LARGE: entry<{ name: string; limit: number }>(
    'PROCESSING_FAILED',
    ({ name, limit }) =>
      `"${name}" cannot be verified completely: the official reader is given init segments and fragments of at most ${limit} bytes each, and some that only it can judge are larger. Package it with shorter segments.`,
  ),
  PUBLICATION_NOT_FOUND: entry<{ name: string }>(
    'PROCESSING_FAILED',
    ({ name }) =>
      `"${name}" holds no playlist or MPD that names fragments with an init segment. Give the files in it as inputs of their own.`,
  ),
  PLAYLIST_TOO_LARGE: entry<{ playlist: string; what: string; count: number; limit: number }>(
    'PROCESSING_FAILED',
    ({ playlist, what, count, limit }) =>
      `The playlist ${shown(playlist)} has ${count} ${what}; at most ${limit} are read. Split it.`,
  ),
  PLAYLIST_MALFORMED: entry<PlaylistPosition & { problem: string }>(
    'PROCESSING_FAILED',
    ({ problem, ...position }) =>
      `The playlist cannot be read (${at(position)}): ${problem}. Correct it and submit it again.`,
  ),
  PLAYLIST_AMBIGUOUS: entry<PlaylistPosition & { problem: string }>(
    'PROCESSING_FAILED',
    ({ problem, ...position }) =>
      `Players may read the playlist differently (${at(position)}): ${problem}. Write the line as the specification has it, and name files as their addresses say, so that it has one meaning in this folder, and submit it again.`,
  ),
  PLAYLIST_UNSUPPORTED: entry<PlaylistPosition & { feature: string; remedy: string }>(
    'PROCESSING_FAILED',
    ({ feature, remedy, ...position }) => `${feature} cannot be signed (${at(position)}). ${remedy}`,
  ),
  PLAYLIST_FILE_MISSING: entry<PlaylistPosition & { reference: string }>(
    'PROCESSING_FAILED',
    ({ reference, ...position }) =>
      `The playlist names ${shown(reference)} (${at(position)}), and there is no such file in the folder. Add the file or correct the playlist.`,
  ),
  PLAYLIST_LEAVES_FOLDER: entry<PlaylistPosition & { reference: string }>(
    'PROCESSING_FAILED',
    ({ reference, ...position }) =>
      `The playlist points outside the folder, at ${shown(reference)} (${at(position)}). Make every address relative to the playlist and bring all files into the folder.`,
  ),
  SEGMENTS_NEED_PACKAGING: entry<{ segment: string }>(
    'PROCESSING_FAILED',
    ({ segment }) =>
      `${shown(segment)} is no MP4 fragment and cannot carry a manifest. Package the media as fragmented MP4 first; package-and-sign does both.`,
  ),
  FRAGMENT_WITHOUT_INIT: entry<{ fragment: string; candidates: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ fragment, candidates }) =>
      candidates.length === 0
        ? `No init segment belongs to the fragment ${shown(fragment)}. Add its init segment, or name both in a playlist.`
        : `It cannot be told which init segment the fragment ${shown(fragment)} belongs to: ${candidates.map(shown).join(', ')}. Name both in a playlist.`,
  ),
  INIT_WITHOUT_FRAGMENTS: entry<{ init: string }>(
    'PROCESSING_FAILED',
    ({ init }) =>
      `No fragment belongs to the init segment ${shown(init)}. Add its fragments, or leave it out of the init pattern.`,
  ),
  INIT_OF_OTHER_KIND: entry<PlaylistPosition & { init: string; kind: string; handlers: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ init, kind, handlers, ...position }) =>
      `The playlist says that the init segment ${shown(init)} is of ${kind} (${at(position)}), but its tracks are of the kind ${handlers.map(shown).join(', ')}. Put the right init segment in its place, or correct the playlist.`,
  ),
  FRAGMENT_IN_TWO_RENDITIONS: entry<PlaylistPosition & { fragment: string; init: string; otherInit: string }>(
    'PROCESSING_FAILED',
    ({ fragment, init, otherInit, ...position }) =>
      `The fragment ${shown(fragment)} is given to the init segment ${shown(init)} (${at(position)}) and also to ${shown(otherInit)}. A fragment can be bound to one init segment only: correct the playlist that is wrong, or give each rendition fragments of its own.`,
  ),
  FRAGMENT_IS_INIT: entry<PlaylistPosition & { name: string }>(
    'PROCESSING_FAILED',
    ({ name, ...position }) =>
      `${shown(name)} is named both as an init segment and as a fragment (${at(position)}). Give the init segment a file or a byte range of its own.`,
  ),
  FRAGMENT_ORDER_CONFLICT: entry<PlaylistPosition & { fragment: string; otherPlaylist: string }>(
    'PROCESSING_FAILED',
    ({ fragment, otherPlaylist, ...position }) =>
      `The fragment ${shown(fragment)} stands in another order (${at(position)}) than in ${shown(otherPlaylist)}. Make the playlists agree.`,
  ),
  FRAGMENT_RANGES_OVERLAP: entry<PlaylistPosition & { file: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ file, offset, ...position }) =>
      `Two byte ranges of ${shown(file)} overlap at byte ${offset} (${at(position)}). Make the playlists agree on where fragments begin and end.`,
  ),
  SEGMENT_INDEX_MALFORMED: entry<{ file: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, offset, problem }) =>
      `The segment index (sidx) at byte ${offset} of ${shown(file)} cannot be used: ${problem}. Package the media again.`,
  ),
  BYTE_RANGE_PAST_END: entry<PlaylistPosition & { file: string; end: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ file, end, sizeBytes, ...position }) =>
      `A byte range of ${shown(file)} ends at byte ${end} (${at(position)}), but the file has only ${sizeBytes} bytes. Submit the file whole, or correct the playlist.`,
  ),
  FRAGMENT_MALFORMED: entry<{ file: string; boxType: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, boxType, offset, problem }) => {
      const box = boxType === '' ? '' : `box ${shown(boxType)} at byte ${offset}: `;
      return `${shown(file)} cannot be signed: ${box}${problem}. Package the media again.`;
    },
  ),
  FRAGMENT_IS_CHUNKED: entry<{ file: string; moofCount: number; mdatCount: number }>(
    'PROCESSING_FAILED',
    ({ file, moofCount, mdatCount }) =>
      `The fragment ${shown(file)} holds ${moofCount} moof and ${mdatCount} mdat boxes, and a C2PA fragment has one of each. Package-and-sign re-segments such a folder.`,
  ),
  OUTPUT_PART_INVALID: entry<{ file: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, problem }) =>
      `The signed publication was hashed again before delivery, and ${shown(file)} is not valid: ${problem}. It was not delivered; report this with the input if it happens again.`,
  ),
};

/** Sentences about the treatment of a folder that is a publication already. */
const TREATMENTS: Readonly<Record<PublicationTreatment, string>> = {
  copied: 'It was carried through as it is',
  repackaged: 'Its segments were made anew, with the same packets',
  signed: 'It was signed as it is',
};

/** One kind of finding about a rendition of a signed publication, or about renditions that are not there. */
interface FoundInPublication {
  readonly title: string;
  readonly finding: string;
  readonly init: string | null;
  /** The first fragments that it is about, by path, and the positions of the first that are missing. */
  readonly parts: readonly string[];
  readonly locations: readonly number[];
  readonly count: number;
  readonly problem: string;
}

/** Warnings about a publication: parts that are not signed, or do not play. */
export const publicationWarnings = {
  PLAYLIST_NAMES_UNKNOWN: warningEntry<PlaylistPosition & { name: string; count: number }>(
    ({ name, count, ...position }) =>
      `This service does not know ${name} (${at(position)})${count > 1 ? `, and ${count - 1} more names in playlists` : ''}. It is carried through; verification names it.`,
  ),
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
  PRESENTATION_CHANGED: warningEntry<{ title: string; problem: string }>(
    ({ title, problem }) =>
      `The playlists of "${title}", or the files that they name, are not those that were signed: ${problem}.`,
  ),
  PUBLICATION_PLAYED_OTHERWISE: warningEntry<{ title: string } & PlaylistPosition & { problem: string; count: number }>(
    ({ title, problem, count, ...position }) =>
      `The signed publication "${title}" is not played as it was signed (${at(position)}): ${problem}.${count > 1 ? ` Further differences: ${count - 1}.` : ''}`,
  ),
  PUBLICATION_NOT_VERIFIED: warningEntry<FoundInPublication>(
    ({ title, init, problem }) =>
      `The signed publication "${title}" could not be verified completely, in the rendition of "${init}": ${problem}. The order and number of its fragments were not verified.`,
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
  FRAGMENTS_NOT_IN_PLAYLISTS: warningEntry<NameSample>(
    (files) =>
      `Signed, and named by no playlist: ${listNames(files)}. Verification lists such fragments as missing, but for sound behind the last pictures. Name them in a playlist, or take them out of the folder and sign again.`,
  ),
  RENDITIONS_NOT_SIGNED: warningEntry<NameSample>(
    (parts) =>
      `Carried through as they are, because no pattern matches them: the renditions of ${listNames(parts)}. Unless they carry a manifest already, verification calls the publication invalid. Choose patterns that match them, or package the folder where their segments are no MP4 fragments.`,
  ),
  FILES_NOT_CARRIED: warningEntry<NameSample>(
    (files) =>
      `Left out of the output: ${listNames(files)}. Carried through are files in the folders of the publication's playlists and segments, and files that a playlist names; hidden files, links, and compressed copies of other files (.gz, .br, .zst, .deflate) are not.`,
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
