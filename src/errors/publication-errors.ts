import { entry } from './entry.ts';

/** A place in a playlist or MPD; `line` counts from one. */
export interface PlaylistPlace {
  readonly playlist: string;
  readonly line: number;
}

/** At most so many characters of a name from outside are shown. */
const SHOWN_NAME_LENGTH = 300;

const shown = (name: string): string =>
  JSON.stringify(name.length <= SHOWN_NAME_LENGTH ? name : `${name.slice(0, SHOWN_NAME_LENGTH)}…`);

const at = ({ playlist, line }: PlaylistPlace): string => `${shown(playlist)}, line ${line}`;

/** What can be wrong with a folder that is to be signed as a streaming publication. */
export const publicationErrors = {
  PATTERN_INVALID: entry<{ pattern: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ pattern, problem }) => `The pattern ${shown(pattern)} cannot be used: ${problem}.`,
  ),
  PATTERN_NO_MATCH: entry<{ pattern: string; names: readonly string[]; fileCount: number }>(
    'PROCESSING_FAILED',
    ({ pattern, names, fileCount }) =>
      fileCount === 0
        ? `The pattern ${shown(pattern)} matches nothing, because the folder holds no files.`
        : `The pattern ${shown(pattern)} matches none of the folder's ${fileCount} files, such as ${names.map(shown).join(', ')}.`,
  ),
  PUBLICATION_TOO_LARGE: entry<{ what: string; count: number; limit: number }>(
    'PROCESSING_FAILED',
    ({ what, count, limit }) =>
      `The publication has ${count} ${what}, more than the ${limit} that are supported. Split it into several folders.`,
  ),
  PLAYLIST_TOO_LARGE: entry<{ playlist: string; what: string; count: number; limit: number }>(
    'PROCESSING_FAILED',
    ({ playlist, what, count, limit }) =>
      `The playlist ${shown(playlist)} has ${count} ${what}; at most ${limit} are read. Split it.`,
  ),
  PLAYLIST_MALFORMED: entry<PlaylistPlace & { problem: string }>(
    'PROCESSING_FAILED',
    ({ problem, ...place }) =>
      `The playlist cannot be read (${at(place)}): ${problem}. Correct it and submit it again.`,
  ),
  PLAYLIST_UNSUPPORTED: entry<PlaylistPlace & { feature: string; remedy: string }>(
    'PROCESSING_FAILED',
    ({ feature, remedy, ...place }) => `${feature} cannot be signed (${at(place)}). ${remedy}`,
  ),
  PLAYLIST_FILE_MISSING: entry<PlaylistPlace & { reference: string }>(
    'PROCESSING_FAILED',
    ({ reference, ...place }) =>
      `The playlist names ${shown(reference)} (${at(place)}), and there is no such file in the folder. Add the file or correct the playlist.`,
  ),
  PLAYLIST_LEAVES_FOLDER: entry<PlaylistPlace & { reference: string }>(
    'PROCESSING_FAILED',
    ({ reference, ...place }) =>
      `The playlist points outside the folder, at ${shown(reference)} (${at(place)}). Make every address relative to the playlist and bring all files into the folder.`,
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
  INIT_OF_OTHER_KIND: entry<PlaylistPlace & { init: string; kind: string; handlers: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ init, kind, handlers, ...place }) =>
      `The playlist says that the init segment ${shown(init)} is of ${kind} (${at(place)}), but its tracks are of the kind ${handlers.map(shown).join(', ')}. Put the right init segment in its place, or correct the playlist.`,
  ),
  FRAGMENT_IN_TWO_RENDITIONS: entry<PlaylistPlace & { fragment: string; init: string; otherInit: string }>(
    'PROCESSING_FAILED',
    ({ fragment, init, otherInit, ...place }) =>
      `The fragment ${shown(fragment)} is given to the init segment ${shown(init)} (${at(place)}) and also to ${shown(otherInit)}. A fragment can be bound to one init segment only.`,
  ),
  FRAGMENT_IS_INIT: entry<PlaylistPlace & { name: string }>(
    'PROCESSING_FAILED',
    ({ name, ...place }) =>
      `${shown(name)} is named both as an init segment and as a fragment (${at(place)}). Give the init segment a file or a byte range of its own.`,
  ),
  FRAGMENT_ORDER_CONFLICT: entry<PlaylistPlace & { fragment: string; otherPlaylist: string }>(
    'PROCESSING_FAILED',
    ({ fragment, otherPlaylist, ...place }) =>
      `The fragment ${shown(fragment)} stands in another order (${at(place)}) than in ${shown(otherPlaylist)}. Make the playlists agree.`,
  ),
  FRAGMENT_RANGES_OVERLAP: entry<PlaylistPlace & { file: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ file, offset, ...place }) =>
      `Two byte ranges of ${shown(file)} overlap at byte ${offset} (${at(place)}). Make the playlists agree on where fragments begin and end.`,
  ),
  SEGMENT_INDEX_MALFORMED: entry<{ file: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, offset, problem }) =>
      `The segment index (sidx) at byte ${offset} of ${shown(file)} cannot be used: ${problem}. Package the media again.`,
  ),
  BYTE_RANGE_PAST_END: entry<PlaylistPlace & { file: string; end: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ file, end, sizeBytes, ...place }) =>
      `A byte range of ${shown(file)} ends at byte ${end} (${at(place)}), but the file has only ${sizeBytes} bytes.`,
  ),
  FRAGMENT_MALFORMED: entry<{ file: string; boxType: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, boxType, offset, problem }) =>
      `${shown(file)} cannot be signed: box ${shown(boxType)} at byte ${offset}: ${problem}. Package the media again.`,
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
