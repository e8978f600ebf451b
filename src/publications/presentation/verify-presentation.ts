import { digestPlan } from '#bytes/execute-plan.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { itemAt } from '#errors/assert.ts';
import { hashBytes, wholeFile } from '../copy-files.ts';
import { partKey } from '../media-part.ts';
import { isHidden } from '../playlists/file-names.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import { foldersIn } from '../playlists/served-names.ts';
import type { PublicationFolder } from '../publication-folder.ts';
import type { Entry, ListedPublication } from '../verification/listed-renditions.ts';
import { positionIn, type ReadManifest } from '../verification/verify-parts.ts';
import type { RenditionReading } from '../verification/verify-renditions.ts';
import {
  type ComparedPlaylist,
  comparePresentation,
  type PresentationDifference,
  signedPathsAmong,
} from './compare-presentation.ts';
import { type BoundPart, hashNamedFiles, type PlaylistText, textOf } from './hash-playlists.ts';
import { type HashedFile, isPresented } from './presentation.ts';
import { type PresentationReading, readPresentation, type UnreadPresentation } from './stored-presentation.ts';
import { addressesIn, addressesInFragment, readStart } from './text-addresses.ts';

/** Playlists that no manifest signs, or those of one that were compared with what it signs. */
export interface VerifiedPresentation {
  /** `equivalent`: changed, and accepted. */
  readonly state: 'as_signed' | 'changed' | 'equivalent' | 'not_signed';
  readonly differences: readonly PresentationDifference[];
  /** Signed playlists that are not there. */
  readonly absent: readonly string[];
  /** Why a presentation that is signed could not be compared. */
  readonly problems: readonly string[];
  /** The texts under the signature, fragments among them, that name files by themselves: no digest covers those. */
  readonly namingTexts: readonly NamingText[];
}

/** A text, or a fragment of one, that a playlist names, and the addresses in it. */
export interface NamingText {
  readonly path: string;
  readonly addresses: readonly string[];
}

/** A manifest as it is signed: what it presents, and the files that its trees bind. */
interface PresentingManifest {
  /** Equal for copies of one manifest, whatever differs in bytes that nobody signed. */
  readonly id: string;
  readonly presentation: PresentationReading;
  /** The files of its renditions by path. */
  readonly bindings: ReadonlyMap<string, BoundPart>;
  /** The files of its fragments of subtitles in XML. */
  readonly texts: ReadonlySet<string>;
}

/** The playlists of a folder that are verified, by the entries that lead to them. */
interface PresentedPlaylists extends Pick<ListedPublication, 'playlists' | 'names' | 'entries'> {
  readonly folder: PublicationFolder;
  /** True where the entries were chosen; else all playlists of the folder are compared. */
  readonly areChosen: boolean;
  /** True where every part that is there is as it was signed; else the positions of fragments are not compared. */
  readonly arePartsIntact: boolean;
  /** Returns the manifests of the media that an entry reaches. */
  manifestsOf(entry: Entry): readonly PresentingManifest[];
}

/** A manifest, and the entries that lead to its media alone. */
interface Group {
  readonly manifest: PresentingManifest;
  readonly entries: Entry[];
}

/** Returns the paths of the playlists that players reach from entries. */
function reachedFrom(entries: readonly Entry[]): Set<string> {
  return new Set(entries.flatMap(({ reaches }) => [...reaches]));
}

/** Compares the playlists of a folder with the presentations of the manifests that their media carry. */
export async function verifyPresentation(
  { folder, playlists, names: namesOf, entries, areChosen, arePartsIntact, manifestsOf }: PresentedPlaylists,
  signal: AbortSignal,
): Promise<VerifiedPresentation> {
  const { groups, mixed, unsigned } = groupedByManifest(entries, manifestsOf);
  const folders = Array.from(areChosen ? [] : foldersIn(folder.files.map(({ path }) => path)), (path) => `${path}/`);
  const presented = folder.files.map(({ path }) => path).filter((path) => isPresented(path) && !isHidden(path));
  const [only, ...further] = groups;
  // Entries without signed media belong to the publication beside them; beside several, nobody signed them.
  if (further.length === 0 && mixed.length === 0) only?.entries.push(...unsigned);
  else if (groups.some(({ manifest }) => manifest.presentation !== null)) {
    const reached = reachedFrom(entries.filter((entry) => !unsigned.includes(entry)));
    const others = areChosen ? unsigned.map(({ path }) => path) : presented.filter((path) => !reached.has(path));
    mixed.push(...others.map((playlist) => ({ part: 'playlist', kind: 'added', playlist }) as const));
  }
  const documents = new Map(playlists.map((document) => [document.path, document]));
  const files = fileHashes(folder, documents, signal);
  const isWhole = groups.length === 1;
  const verified = areChosen ? [...reachedFrom(entries)] : presented;
  const othersOf = (reached: ReadonlySet<string>): string[] => verified.filter((path) => !reached.has(path));
  /** Returns the playlists that a manifest signs beside those that lead to its media. */
  const claimsOf = async ({ manifest: { presentation }, entries: own }: Group): Promise<readonly string[]> => {
    const reached = reachedFrom(own);
    if (isWhole || presentation === null || 'problem' in presentation) return othersOf(reached);
    return signedPathsAmong(presentation, await files.playlistsAt([...reached]), othersOf(reached));
  };
  const compare = async (
    { manifest, entries: own }: Group,
    claimed: readonly string[],
  ): Promise<VerifiedPresentation> => {
    const { presentation, bindings, texts } = manifest;
    if (presentation === null) return NOT_SIGNED;
    if ('problem' in presentation) return unread(presentation);
    const reached = reachedFrom(own);
    const paths = new Set([...reached, ...claimed]);
    const hashed = await hashNamedFiles(
      await files.playlistsAt([...paths]),
      { folder, bindingOf: (path) => bindings.get(path) ?? null, hash: files.hash },
      signal,
    );
    const isEntry = new Set(own.map(({ path }) => path));
    const all = hashed.map(({ fragments, ...playlist }): ComparedPlaylist => {
      const names = namesOf.get(playlist.path) ?? [];
      const isHlsMedia = documents.get(playlist.path)?.kind === 'hls-media';
      const positions = arePartsIntact && fragments !== undefined ? { fragments } : {};
      const isOfAnother = !isWhole && !reached.has(playlist.path);
      return { ...playlist, ...positions, isEntry: isEntry.has(playlist.path), isHlsMedia, names, isOfAnother };
    });
    const others = presented.filter((path) => !paths.has(path));
    const compared = comparePresentation(presentation, all, [...others, ...folders]);
    const hidden = new Set<string>();
    for (const path of compared.absent) if (await folder.hides?.(path, signal)) hidden.add(path);
    const unlisted = [...hidden].map((playlist) => ({ part: 'playlist', kind: 'unreadable', playlist }) as const);
    const differences = [...compared.differences, ...unlisted];
    const absent = compared.absent.filter((path) => !hidden.has(path));
    const state = differences.length === 0 ? 'as_signed' : 'changed';
    const named = hashed.flatMap((each) => each.named.map(({ path }) => path));
    const namingTexts = await files.namingTexts(named, texts);
    return { state, differences, absent, problems: [], namingTexts };
  };
  const compared = await mapConcurrent(groups, 1, async (group) => {
    const claimed = await claimsOf(group);
    const verdict = await compare(group, claimed);
    const isOfAll = claimed.length === othersOf(reachedFrom(group.entries)).length;
    return { group, verdict, signsAll: verdict.state === 'as_signed' && isOfAll };
  });
  // A folder may be signed publication by publication: the last signature covers what earlier ones say of the playlists of others.
  const isCovered = compared.some(({ signsAll }) => signsAll);
  const verdicts = await mapConcurrent(compared, 1, ({ group, verdict, signsAll }) =>
    isCovered && !signsAll ? compare(group, []) : Promise.resolve(verdict),
  );
  return joined([
    ...verdicts,
    ...(mixed.length > 0 ? [{ ...NOT_SIGNED, state: 'changed' as const, differences: mixed }] : []),
  ]);
}

/** Groups entries by the manifest that their media carry; beside them stand those with several manifests, and those with none. */
function groupedByManifest(entries: readonly Entry[], manifestsOf: PresentedPlaylists['manifestsOf']) {
  const byManifest = new Map<string, Group>();
  const mixed: PresentationDifference[] = [];
  const unsigned: Entry[] = [];
  for (const entry of entries) {
    const [manifest, ...others] = new Map(manifestsOf(entry).map((each) => [each.id, each])).values();
    if (manifest === undefined) unsigned.push(entry);
    else if (others.length === 0) {
      const group = byManifest.get(manifest.id) ?? { manifest, entries: [] };
      group.entries.push(entry);
      byManifest.set(manifest.id, group);
    } else if ([manifest, ...others].some(({ presentation }) => presentation !== null)) {
      mixed.push({ part: 'playlist', kind: 'added', playlist: entry.path });
    }
  }
  return { groups: [...byManifest.values()], mixed, unsigned };
}

/** Returns the verdict where a presentation is signed, and cannot be compared. */
function unread({ problem, isLater }: UnreadPresentation): VerifiedPresentation {
  const differences = isLater ? [] : [{ part: 'playlist', kind: 'unreadable', playlist: null } as const];
  return { ...NOT_SIGNED, state: isLater ? 'not_signed' : 'changed', differences, problems: [problem] };
}

/** Returns a function that finds the manifests of the media that an entry reaches. */
export function manifestsByEntry(
  renditions: readonly RenditionReading[],
  manifests: readonly ReadManifest[],
): (entry: Entry) => PresentingManifest[] {
  const idOf = manifests.map(({ binding }, number) => binding?.id ?? String(number));
  const renditionsOf = Map.groupBy(
    renditions.filter(({ read }) => read !== null && read.manifest !== null),
    ({ read }) => idOf[read?.manifest ?? -1],
  );
  const presenting = manifests.map(({ store }, number): PresentingManifest => {
    const id = itemAt(idOf, number);
    const own = renditionsOf.get(id) ?? [];
    const bindings = new Map(own.flatMap(bindingsOf));
    const ofText = own.filter(({ read }) => read?.codecs.some((codec) => codec.id === 'stpp'));
    const texts = new Set(ofText.flatMap(({ listed }) => listed.present.fragments.map(({ path }) => path)));
    return { id, presentation: readPresentation(store), bindings, texts };
  });
  const manifestOf = new Map(renditions.map(({ listed, read }) => [partKey(listed.init), read?.manifest ?? null]));
  return ({ inits }) => inits.flatMap((init) => presenting[manifestOf.get(partKey(init)) ?? -1] ?? []);
}

/** Returns the bindings of the files of a rendition, by path. */
function bindingsOf({ listed, read, map }: RenditionReading): [string, BoundPart][] {
  const bound = map && { uniqueId: map.uniqueId, localId: map.localId, count: map.count };
  const parts = listed.present.fragments.map(({ path }, index): [string, BoundPart] => {
    const location = positionIn(map, read?.fragments[index]?.found);
    return [path, bound === null || location === undefined ? 'other' : { ...bound, location }];
  });
  const { path } = listed.init;
  return bound === null ? parts : [...parts, [path, { ...bound, path }]];
}

/** The verdict where no manifest signs a presentation. */
export const NOT_SIGNED: VerifiedPresentation = {
  state: 'not_signed',
  differences: [],
  absent: [],
  problems: [],
  namingTexts: [],
};
const WORST_FIRST = ['changed', 'not_signed', 'as_signed'] as const;

function joined(parts: readonly VerifiedPresentation[]): VerifiedPresentation {
  const states = new Set(parts.map(({ state }) => state));
  return {
    state: WORST_FIRST.find((state) => states.has(state)) ?? 'not_signed',
    differences: parts.flatMap(({ differences }) => differences),
    absent: parts.flatMap(({ absent }) => absent),
    problems: parts.flatMap(({ problems }) => problems),
    namingTexts: parts.flatMap(({ namingTexts }) => namingTexts),
  };
}

/** A file that was hashed, and the addresses in it where it is text. */
type ReadFile = HashedFile & Pick<NamingText, 'addresses'>;

/** Returns functions that hash files of a folder, each once. `documents` are the playlists that were read. */
function fileHashes(folder: PublicationFolder, documents: ReadonlyMap<string, PlaylistDocument>, signal: AbortSignal) {
  const paths = new Set(folder.files.map(({ path }) => path));
  const hashes = new Map<string, Promise<ReadFile>>();

  /** Hashes a file; null where there is none at the path. */
  const hash = async (path: string): Promise<HashedFile | null> => {
    if (!paths.has(path)) return null;
    const known = hashes.get(path) ?? hashOfFile(folder, path, signal);
    hashes.set(path, known);
    return await known;
  };

  /** Returns the playlists at the paths that are there: those that were read by the text that is verified. */
  const playlistsAt = async (wanted: readonly string[]): Promise<PlaylistText[]> => {
    const playlists: PlaylistText[] = [];
    for (const path of wanted.filter((each) => paths.has(each))) {
      const read = documents.get(path);
      const text = read?.text ?? (await textOf(folder, path, signal));
      // The folder gives the bytes of the text again.
      const file = await hash(path);
      if (file !== null) playlists.push({ ...file, text, read });
    }
    return playlists;
  };

  /** Returns the texts that name files, among those that were hashed and among fragments. */
  const namingTexts = async (hashed: readonly string[], fragments: ReadonlySet<string>): Promise<NamingText[]> => {
    const ofFiles = await mapConcurrent([...new Set(hashed)], 1, async (path): Promise<NamingText> => {
      return { path, addresses: (await hashes.get(path))?.addresses ?? [] };
    });
    const ofFragments = await mapConcurrent([...fragments], 1, async (path): Promise<NamingText> => {
      const start = withSource(folder, { path }, signal, (source) => readStart(source, signal));
      return { path, addresses: addressesInFragment(await start) };
    });
    return [...ofFiles, ...ofFragments].filter(({ addresses }) => addresses.length > 0);
  };
  return { hash, playlistsAt, namingTexts };
}

function hashOfFile(folder: SourceFolder, path: string, signal: AbortSignal): Promise<ReadFile> {
  return withSource(folder, { path }, signal, async (source) => {
    const { sizeBytes } = source;
    const start = await readStart(source, signal);
    const addresses = addressesIn(start);
    if (start.length === sizeBytes) return { ...hashBytes(path, start), addresses };
    const { flat: digest } = await digestPlan(wholeFile(sizeBytes), source, { signal });
    return { path, sizeBytes, digest, addresses };
  });
}
