import type { PlaylistPosition } from '#errors/entry.ts';
import { describePart, partKey, type Rendition } from './media-part.ts';
import { isMalformed } from './presentation/hash-playlists.ts';
import { readPresentation } from './presentation/stored-presentation.ts';
import type { VerifiedPresentation } from './presentation/verify-presentation.ts';
import type { PublicationFolder } from './publication-folder.ts';
import {
  type ListedPublication,
  type ListedRendition,
  readListedPublication,
} from './verification/listed-renditions.ts';
import type { PublicationVerdict } from './verification/publication-verdict.ts';
import { verifyListed } from './verification/verify-listed.ts';
import type { PartsVerification, ReadFragment } from './verification/verify-parts.ts';
import type { Deviation, RenditionReading } from './verification/verify-renditions.ts';
import { mapOf } from './verification/verify-sequence.ts';

/** A signed source as its playlists play it. */
export interface SourceVerdict {
  /** How its playlists differ from those that one of its manifests signs, as the end of a sentence; null where they do not. */
  readonly change: string | null;
  /** The first place where it plays otherwise than it was signed; null where there is none. */
  readonly otherwise: PlayedOtherwise | null;
}

/** A line of a playlist that plays otherwise than it was signed. */
interface PlayedOtherwise extends PlaylistPosition {
  /** The problem as the end of a sentence. */
  readonly problem: string;
  /** The number of such places, this one included. */
  readonly count: number;
}

/** A source whose parts were verified, each rendition with what was read of it. */
type VerifiedSource = PublicationVerdict & { readonly verification: PartsVerification };

/**
 * Verifies a signed source as `verifyPublication` does. Parts that were read are not read again; others that its playlists list
 * are. A part that cannot be verified is not as it was signed.
 */
export async function verifySource(
  folder: PublicationFolder,
  source: VerifiedSource,
  signal: AbortSignal,
): Promise<SourceVerdict> {
  const { verification } = source;
  const isPresented = source.manifests.some(({ store }) => readPresentation(store) !== null);
  try {
    const publication = await readListedPublication(folder, null, signal);
    const readings: RenditionReading[] = [];
    for (const listed of publication.renditions) {
      const read = listed.isInitMissing ? null : await readingOf(listed, source);
      readings.push({ listed, read, map: read === null ? null : mapOf(read) });
    }
    const by = { verification, areChosen: false, others: [] };
    const verified = await verifyListed(folder, publication, readings, by, signal);
    const { presentation, renditions, missingRenditions, findings } = verified;
    const isAsSigned = presentation.state === 'as_signed';
    const [entry = { path: folder.name }] = publication.entries;
    const deviations = renditions.flatMap((rendition) => rendition.deviations);
    const ofPlaylists = [
      ...deviations.filter(({ isOfPlaylist }) => isOfPlaylist).map((each) => placeOf(each, publication)),
      ...publication.unbound.flatMap(({ playlist, fragments: [first] }) =>
        first === undefined ? [] : [{ playlist, line: first.line, problem: problemOf('unsigned', first.part) }],
      ),
      ...findings.filter(({ kind }) => kind !== 'unknown'),
    ];
    const ofFolder = findings.filter(({ isOfFolder }) => isOfFolder === true);
    const ofFiles = [
      ...deviations
        .filter(({ isOfPlaylist, kind }) => !isOfPlaylist && !(isAsSigned && kind === 'unsigned'))
        .map((each) => placeOf(each, publication)),
      ...(missingRenditions > 0 && !isAsSigned
        ? [{ playlist: entry.path, line: 1, problem: 'it does not lead to a signed rendition' }]
        : []),
    ];
    // The verdict on the parts tells of files.
    const told = [...(isAsSigned ? ofFolder : ofPlaylists), ...(source.findings.length > 0 ? [] : ofFiles)];
    const change = presentation.state === 'changed' ? describeChange(presentation) : null;
    const [first] = told;
    if (first === undefined) return { change, otherwise: null };
    const { playlist, line, problem } = first;
    return { change, otherwise: { playlist, line, problem, count: told.length } };
  } catch (error) {
    if (!isMalformed(error)) throw error;
    const { playlist = folder.name, line = 1 } = error.details as Partial<PlaylistPosition>;
    // Without a playlist nothing is played that could be verified.
    const isPlayed = error.reason !== 'PUBLICATION_NOT_FOUND' && !isPresented;
    const otherwise = { playlist, line, problem: error.message.replace(/\.$/, ''), count: 1 };
    return { change: isPresented ? error.message : null, otherwise: isPlayed ? otherwise : null };
  }
}

/** Returns what was read of a rendition, in the order in which playlists list its fragments. Reads those that were not. */
async function readingOf({ init, present }: ListedRendition, { verification, renditions }: VerifiedSource) {
  const known = renditions.find(({ listed }) => partKey(listed.init) === partKey(init));
  if (known === undefined) return await verification.add(present);
  const { listed, read } = known;
  const readOf = new Map(listed.present.fragments.map((part, index) => [partKey(part), read.fragments[index]]));
  const unread = present.fragments.filter((part) => !readOf.has(partKey(part)));
  const further = unread.length === 0 ? [] : (await verification.add({ init, fragments: unread })).fragments;
  for (const [index, part] of unread.entries()) readOf.set(partKey(part), further[index]);
  if (read.binding === null) return read;
  return { ...read, fragments: present.fragments.map((part) => readOf.get(partKey(part)) ?? UNREAD) };
}

const UNREAD: ReadFragment = { found: null, times: null };

type Place = Omit<PlayedOtherwise, 'count'>;

/** Returns the line of a playlist that shows a deviation: that of its part, or of what is played where it is missing. */
function placeOf(
  { kind, file, playlist, index, startSeconds, count, isOfPlaylist }: Deviation,
  { listings, entries }: ListedPublication,
): Place {
  const own = listings.filter((listing) => listing.playlist === playlist);
  const parts = own.flatMap(({ fragments }) => fragments);
  const named = file === null ? [] : parts.filter(({ part }) => partKey(part) === partKey(file));
  const next = parts.find((part) => startSeconds !== null && (part.startSeconds ?? -1) >= startSeconds);
  const isAgain = isOfPlaylist && kind === 'added';
  const line = (isAgain ? named.at(-1) : (named[0] ?? next ?? parts[index ?? 0]))?.line ?? 1;
  const of = listings.find(({ init }) => file !== null && init !== null && partKey(init.part) === partKey(file));
  const problem =
    isAgain && file !== null
      ? `"${describePart(file)}" is played again`
      : file === null
        ? `${count === 1 ? 'a signed fragment is' : `${count} signed fragments are`} left out`
        : problemOf(kind, file);
  if (playlist !== null) return { playlist, line, problem };
  return { playlist: of?.playlist ?? entries[0]?.path ?? '', line: of?.init?.line ?? 1, problem };
}

const PROBLEMS: Readonly<Record<Deviation['kind'], string>> = {
  altered: 'is not as it was signed',
  missing: 'is missing',
  swapped: 'stands in the place of another part',
  reordered: 'is not played where it was signed',
  added: 'is not part of what was signed',
  unsigned: 'was not signed',
};

function problemOf(kind: Deviation['kind'], file: Rendition['init']): string {
  return `"${describePart(file)}" ${PROBLEMS[kind]}`;
}

/** Describes the first difference as the end of a sentence. */
function describeChange({ differences: [first], problems: [problem] }: VerifiedPresentation): string {
  if (first === undefined || first.playlist === null) return problem ?? 'its playlists are not the signed ones';
  if (first.part === 'files') return `files that "${first.playlist}" names are not the signed ones`;
  if (first.kind === 'added') return `"${first.playlist}" was not there`;
  return first.kind === 'missing' ? `"${first.playlist}" is missing` : `"${first.playlist}" is not the signed one`;
}
