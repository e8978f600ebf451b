import type { SourceFolder } from '#bytes/source-folder.ts';
import { type PackageParams, type PackageTrack, TRACK_ROLES, type TrackRole } from '#contract/package-request.ts';
import type { PublicationTreatment } from '#errors/entry.ts';
import { sampleOfNames } from '#errors/entry.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { ExistingPublication, ExistingRendition, SegmentKind } from '#publications/existing-publication.ts';
import { auxiliaryRenditionsIn, holdsPictures, PICTURES, TRICK_PLAY } from '#publications/existing-publication.ts';
import { joinedName } from '#publications/joined-folder.ts';
import { whyLive } from '#publications/refuse-unjoinable.ts';

/** Limit of playlists that a warning names. */
const MAX_NAMED_PLAYLISTS = 3;

const SEGMENT_NOUNS: Readonly<Record<SegmentKind, string>> = {
  cmaf: 'CMAF segments',
  'byte-ranges': 'byte ranges of whole files',
  chunked: 'segments of several chunks',
  'transport-stream': 'MPEG transport streams',
  'packed-audio': 'packed audio',
  webm: 'WebM segments',
  'self-initialising': 'MP4 segments that hold their init segments themselves',
};

/** Warns that a folder is a publication already, and says how it is treated, unless the request does (`params.existing`). */
export function publicationFoundWarning(
  { renditions, playlists, segments }: ExistingPublication,
  treatment: PublicationTreatment,
  { existing: wish = 'auto' }: Pick<PackageParams, 'existing'>,
): Warning[] {
  if (wish !== 'auto') return [];
  return [
    warning('PUBLICATION_FOUND', {
      playlists: playlists.slice(0, MAX_NAMED_PLAYLISTS).map(({ path }) => path),
      playlistCount: playlists.length,
      renditionCount: renditions.length,
      segments: SEGMENT_NOUNS[segments],
      treatment,
    }),
  ];
}

/** Warns about a live publication that stays as it is: it may still grow. */
export function growthOf({ playlists }: ExistingPublication): Warning[] {
  for (const playlist of playlists) {
    const problem = whyLive(playlist);
    if (problem !== null) return [warning('PUBLICATION_MAY_GROW', { playlist: playlist.path, problem })];
  }
  return [];
}

/**
 * Returns the language, label and role that playlists give each rendition, as tracks of its joined file. Those that the
 * request gives the path of its playlist take precedence.
 */
export function tracksOfRenditions(
  { renditions }: ExistingPublication,
  requested: readonly PackageTrack[],
): PackageTrack[] {
  const names = new Set(renditions.map(({ name }) => name));
  const known = renditions.flatMap((rendition) => {
    const listed = listedTrack(rendition);
    const asked = requested.filter(({ file }) => file === rendition.name);
    const file = joinedName(rendition);
    if (asked.length > 0) return asked.map((track) => ({ ...listed, ...track, file }));
    return Object.keys(listed).length === 0 ? [] : [{ ...listed, file }];
  });
  return [...known, ...requested.filter(({ file }) => !names.has(file))];
}

/** Returns the default language of the publication's own playlists. */
export function defaultLanguageOf({ renditions }: ExistingPublication): string | null {
  return renditions.find(({ isDefault }) => isDefault)?.language ?? null;
}

/** Returns the joined files that share one timeline: all but unfragmented subtitles of DASH, which count from the start. */
export function sharedTimelineOf({ renditions, playlists }: ExistingPublication): ReadonlySet<string> {
  const ofHls = new Set(playlists.filter(({ kind }) => kind === 'hls-media').map(({ path }) => path));
  const shared = renditions.filter(({ isText, hasInit, playlist }) => !isText || hasInit || ofHls.has(playlist));
  return new Set(shared.map(joinedName));
}

function listedTrack({ language, label, role }: ExistingRendition): Omit<PackageTrack, 'file'> {
  return {
    ...(language !== null && { language }),
    ...(label !== null && label !== '' && { label }),
    ...(isRole(role) && { role }),
  };
}

function isRole(role: string | null): role is TrackRole {
  return (TRACK_ROLES as readonly (string | null)[]).includes(role);
}

/** Warns about files that no playlist names, and renditions that no pattern chooses. */
export function unnamedFiles(
  { files }: SourceFolder,
  { playlists, renditions, unchosen }: ExistingPublication,
  { iframe_playlists: makesKeyFrames = false }: PackageParams,
): Warning[] {
  const named = new Set([
    ...playlists.map(({ path }) => path),
    ...playlists.flatMap((playlist) =>
      playlist.kind === 'mpd'
        ? playlist.representations.flatMap(({ init, segments }) => [
            ...(init === null ? [] : [init.path]),
            ...segments.map(({ part }) => part.path),
          ])
        : [],
    ),
    ...[...renditions, ...unchosen].flatMap(({ parts }) => parts.map(({ path }) => path)),
  ]);
  const chosen = new Set(renditions.map(({ playlist }) => playlist));
  const others = playlists.filter(({ kind, path }) => kind === 'mpd' || !chosen.has(path));
  const auxiliary = auxiliaryRenditionsIn(others).filter((noun) => noun !== TRICK_PLAY || !makesKeyFrames);
  const isAuxiliary = (path: string): boolean => auxiliary.includes(PICTURES) && holdsPictures([path]);
  const unnamed = files.map(({ path }) => path).filter((path) => !named.has(path) && !isAuxiliary(path));
  return [
    ...(unnamed.length === 0 ? [] : [warning('FILES_NOT_IN_PLAYLISTS', sampleOfNames(unnamed))]),
    ...(unchosen.length === 0
      ? []
      : [warning('RENDITIONS_NOT_CHOSEN', sampleOfNames(unchosen.map(({ name }) => name)))]),
    ...(auxiliary.length === 0 ? [] : [warning('AUXILIARY_RENDITIONS_LEFT_OUT', { kinds: auxiliary })]),
  ];
}

/** Warns about fragments that no playlist names: they stay unsigned beside an init segment that is signed. */
export function unsignedFragments({ files }: SourceFolder, fragments: ReadonlySet<string>): Warning[] {
  const paths = files.map(({ path }) => path);
  const unsigned = paths.filter((path) => /\.(?:m4s|cmf[vat])$/i.test(path) && !fragments.has(path));
  return unsigned.length === 0 ? [] : [warning('FRAGMENTS_UNSIGNED', sampleOfNames(unsigned))];
}
