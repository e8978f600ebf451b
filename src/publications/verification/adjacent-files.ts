import { type MediaPart, partKey } from '../media-part.ts';
import type { AdjacentFile, MpdRepresentation, PlaylistDocument } from '../playlists/playlist-document.ts';
import { ambiguous } from '../playlists/playlist-finding.ts';
import { representationsIn } from '../playlists/rendition-listings.ts';
import type { FoundInPlaylist } from './playlist-findings.ts';
import { type FoundFragment, type PartsVerification, positionIn } from './verify-parts.ts';
import type { RenditionReading } from './verify-renditions.ts';

/** A file beside the segments of a representation. */
interface Candidate extends AdjacentFile {
  readonly representation: MpdRepresentation;
}

/**
 * Finds files beside the segments that a playlist lists, which players play that count more of them: each has to be the fragment
 * that was signed there.
 */
export async function findAdjacentFiles(
  playlists: readonly PlaylistDocument[],
  readings: readonly RenditionReading[],
  verification: PartsVerification,
): Promise<FoundInPlaylist[]> {
  const representations = representationsIn(playlists);
  const candidates = representations.flatMap((representation): Candidate[] =>
    representation.adjacent.map((each) => ({ ...each, representation })),
  );
  const byInit = Map.groupBy(candidates, ({ representation: { init } }) => (init === null ? '' : partKey(init)));
  const found: FoundInPlaylist[] = [];
  for (const [init, own] of byInit) {
    const reading = readings.find(({ listed }) => partKey(listed.init) === init);
    const isSigned = reading === undefined ? () => false : await signedBeside(reading, own, verification);
    for (const candidate of own) {
      if (isSigned(candidate) || isListed(candidate)) continue;
      const { playlist, line } = candidate.representation;
      const problem = `some players count more segments, and play "${candidate.path}" too`;
      // A presentation covers text and pictures that are counted so.
      found.push({ ...ambiguous(playlist, problem, line), isOfFolder: init !== '' });
    }
  }
  return found;

  /** Returns true for what the same playlist lists in another period, as where numbers go on, and for text that it lists. */
  function isListed({ path, representation: { playlist, lineage } }: Candidate): boolean {
    return representations.some(
      (other) =>
        other.playlist === playlist &&
        (other.init === null || other.lineage[1] !== lineage[1]) &&
        other.segments.some(({ part }) => part.path === path),
    );
  }
}

/** Returns a function that tells whether files are bound at the positions beside those of the segments. Reads them. */
async function signedBeside(
  { listed: { init, present }, read: reading, map }: RenditionReading,
  candidates: readonly Candidate[],
  verification: PartsVerification,
): Promise<(candidate: Candidate) => boolean> {
  const listed = new Set(present.fragments.map(partKey));
  const paths = new Set(candidates.map(({ path }) => path));
  const further = [...paths].filter((path) => !listed.has(path)).map((path): MediaPart => ({ path, range: null }));
  const positions = new Map<string, number>();
  const note = (parts: readonly MediaPart[], fragments: readonly { readonly found: FoundFragment }[]): void => {
    for (const [index, part] of parts.entries()) {
      const position = positionIn(map, fragments[index]?.found);
      if (position !== undefined) positions.set(partKey(part), position);
    }
  };
  if (reading !== null && map !== null) {
    note(present.fragments, reading.fragments);
    if (further.length > 0) note(further, (await verification.add({ init, fragments: further })).fragments);
  }
  return ({ path, distance, representation: { segments } }) => {
    const neighbour = distance < 0 ? segments[0] : segments.at(-1);
    const position = neighbour && positions.get(partKey(neighbour.part));
    return position !== undefined && positions.get(path) === position + distance;
  };
}
