import type { SourceFolder } from '#bytes/source-folder.ts';
import { type PackageParams, type PackageTrack, TRACK_ROLES, type TrackRole } from '#contract/package-request.ts';
import { sampleOfNames } from '#errors/named-files.ts';
import type { PublicationTreatment } from '#errors/publication-warnings.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { asidesIn, holdsPictures, PICTURES, TRICK_PLAY } from '#publications/repackaging/asides.ts';
import type {
  ExistingPublication,
  ExistingRendition,
  SegmentKind,
} from '#publications/repackaging/existing-publication.ts';
import { joinedName } from '#publications/repackaging/joined-folder.ts';
import { whyLive } from '#publications/repackaging/refuse-unjoinable.ts';

/** Playlists that a finding names. */
const MAX_NAMED_PLAYLISTS = 3;

const SEGMENT_NOUNS: Readonly<Record<SegmentKind, string>> = {
  cmaf: 'CMAF segments',
  'byte-ranges': 'byte ranges of whole files',
  chunked: 'segments of several chunks',
  'transport-stream': 'MPEG transport streams',
  'packed-audio': 'packed audio',
  'self-initialising': 'MP4 segments that hold their init segments themselves',
};

/**
 * Warns that a folder was found to be a publication, and tells what is done with it, unless the request says what is to
 * be done (`params.existing`).
 */
export function describeFinding(
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

/** Warns that a publication which stays as it is may still grow, where one of its playlists shows it. */
export function growthOf({ playlists }: ExistingPublication): Warning[] {
  for (const playlist of playlists) {
    const problem = whyLive(playlist);
    if (problem !== null) return [warning('PUBLICATION_MAY_GROW', { playlist: playlist.path, problem })];
  }
  return [];
}

/**
 * What the playlists say of each rendition, as the tracks of its joined file; what the request says of it, under the path
 * of its playlist, comes first.
 */
export function tracksOfRenditions(
  { renditions }: ExistingPublication,
  requested: readonly PackageTrack[],
): PackageTrack[] {
  const names = new Set(renditions.map(({ name }) => name));
  const known = renditions.flatMap((rendition) => {
    const stated = statedTrack(rendition);
    const asked = requested.filter(({ file }) => file === rendition.name);
    const file = joinedName(rendition);
    if (asked.length > 0) return asked.map((track) => ({ ...stated, ...track, file }));
    return Object.keys(stated).length === 0 ? [] : [{ ...stated, file }];
  });
  return [...known, ...requested.filter(({ file }) => !names.has(file))];
}

/** The language that the publication's own playlists make the default. */
export function defaultLanguageOf({ renditions }: ExistingPublication): string | null {
  return renditions.find(({ isDefault }) => isDefault)?.language ?? null;
}

/** The joined files that have one time: all but subtitles of DASH that are no fragments, which count from the start. */
export function oneTimeOf({ renditions, playlists }: ExistingPublication): ReadonlySet<string> {
  const ofHls = new Set(playlists.filter(({ kind }) => kind === 'hls-media').map(({ path }) => path));
  const shared = renditions.filter(({ isText, hasInit, playlist }) => !isText || hasInit || ofHls.has(playlist));
  return new Set(shared.map(joinedName));
}

function statedTrack({ language, label, role }: ExistingRendition): Omit<PackageTrack, 'file'> {
  return {
    ...(language !== null && { language }),
    ...(label !== null && label !== '' && { label }),
    ...(isRole(role) && { role }),
  };
}

function isRole(role: string | null): role is TrackRole {
  return (TRACK_ROLES as readonly (string | null)[]).includes(role);
}

/** Warnings about files that no playlist names, and renditions that no pattern chooses, where there are any. */
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
  const asides = asidesIn(others).filter((noun) => noun !== TRICK_PLAY || !makesKeyFrames);
  const isAside = (path: string): boolean => asides.includes(PICTURES) && holdsPictures([path]);
  const unnamed = files.map(({ path }) => path).filter((path) => !named.has(path) && !isAside(path));
  return [
    ...(unnamed.length === 0 ? [] : [warning('FILES_NOT_IN_PLAYLISTS', sampleOfNames(unnamed))]),
    ...(unchosen.length === 0
      ? []
      : [warning('RENDITIONS_NOT_CHOSEN', sampleOfNames(unchosen.map(({ name }) => name)))]),
    ...(asides.length === 0 ? [] : [warning('AUXILIARY_RENDITIONS_LEFT_OUT', { kinds: asides })]),
  ];
}

/** Warns about fragments that no playlist names: they stay unsigned beside an init segment that is signed. */
export function unsignedFragments({ files }: SourceFolder, fragments: ReadonlySet<string>): Warning[] {
  const paths = files.map(({ path }) => path);
  const unsigned = paths.filter((path) => /\.(?:m4s|cmf[vat])$/i.test(path) && !fragments.has(path));
  return unsigned.length === 0 ? [] : [warning('FRAGMENTS_UNSIGNED', sampleOfNames(unsigned))];
}
