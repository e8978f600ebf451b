import { type MediaPart, partKey } from '../media-part.ts';
import { attributeOf, type HlsLine } from '../playlists/hls-lines.ts';
import { referencesOf } from '../playlists/hls-playlist.ts';
import { isPlayedByAll, protectionOf, statedKinds } from '../playlists/mpd-kinds.ts';
import { innermostAttribute } from '../playlists/mpd-timeline.ts';
import type { HlsPlaylist, MpdDocument, PlaylistDocument } from '../playlists/playlist-document.ts';
import { ambiguous } from '../playlists/playlist-finding.ts';
import { hasInit, type RenditionListing } from '../playlists/rendition-listings.ts';
import { type Codec, codecNamed, isOf } from './codecs.ts';
import { type FoundInPlaylist, onceByLine } from './playlist-findings.ts';
import type { ReadRendition } from './verify-parts.ts';

/** A choice that a playlist leaves to players: a variant with one of the sounds of its group (HLS), or a period (DASH). */
export interface Choice {
  readonly playlist: string;
  readonly line: number;
  readonly played: readonly PlayedRendition[];
  /** The init segments of a variant and its groups, which `codecs` are of; in DASH those of all periods, whoever plays them. */
  readonly reached: readonly MediaPart[];
  /** The codecs that its CODECS name; null where it has none, and in DASH. */
  readonly codecs: readonly Codec[] | null;
}

/** A rendition among those that play together. */
interface PlayedRendition {
  readonly playlist: string;
  readonly init: MediaPart;
  /** The kinds of media that the playlist says it is of, such as `audio`; none where it does not say it. */
  readonly kinds: ReadonlySet<string>;
  /** The codecs that the playlist names for it alone; null where it names none. */
  readonly codecs: readonly Codec[] | null;
  /** The schemes of its protection; none in HLS, where keys stand beside segments. */
  readonly protection: ReadonlySet<string>;
  /** The discontinuities that it is played between, by their numbers; none in DASH. */
  readonly sections: ReadonlySet<number>;
}

/** Returns the choices that playlists offer; a media playlist is one rendition, and offers none. */
export function choicesOf(playlists: readonly PlaylistDocument[], listings: readonly RenditionListing[]): Choice[] {
  const listingsOf = Map.groupBy(listings, ({ playlist }) => playlist);
  const playedOf = (path: string) => playedIn(listingsOf.get(path) ?? []);
  return playlists.flatMap((document): Choice[] => {
    return document.kind === 'mpd' ? periodsOf(document) : variantsOf(document, playedOf);
  });
}

function playedIn(listings: readonly RenditionListing[]): PlayedRendition[] {
  const sections = new Set(listings.flatMap(({ fragments }) => fragments.map(({ section }) => section)));
  const none: ReadonlySet<string> = new Set();
  return listings.filter(hasInit).map(({ playlist, init }) => {
    return { playlist, init: init.part, kinds: none, codecs: null, protection: none, sections };
  });
}

function variantsOf(playlist: HlsPlaylist, playedOf: (path: string) => PlayedRendition[]): Choice[] {
  const named = referencesOf(playlist).map(({ path, ...each }) => ({ ...each, played: playedOf(path) }));
  const variants = named.filter(({ isVariant }) => isVariant);
  return variants.flatMap(({ line, tag, played }) => {
    const stated = (name: string) => (tag === null ? undefined : attributeOf(tag, name));
    const codecs = codecsIn(stated('CODECS'));
    const membersOf = (type: 'AUDIO' | 'VIDEO') =>
      membersIn(playlist, type, stated(type)).map(
        (member) => named.find((each) => each.line === member.line)?.played ?? [],
      );
    // Sound without an address is in the variant itself (RFC 8216bis §4.4.6.1).
    const sounds = membersOf('AUDIO');
    const pictures = membersOf('VIDEO');
    const reached = [...played, ...sounds.flat(), ...pictures.flat()].map(({ init }) => init);
    return (sounds.length === 0 ? [[]] : sounds).map((sound) => {
      return { playlist: playlist.path, line, played: [...played, ...sound], reached, codecs };
    });
  });
}

function codecsIn(text: string | undefined): Codec[] | null {
  return text === undefined ? null : text.split(',').map(codecNamed);
}

/** Returns the tags of a group, with an address and without. */
function membersIn({ lines }: HlsPlaylist, type: 'AUDIO' | 'VIDEO', group: string | undefined): HlsLine[] {
  if (group === undefined) return [];
  return lines.filter(
    (line) =>
      line.name === 'EXT-X-MEDIA' && attributeOf(line, 'TYPE') === type && attributeOf(line, 'GROUP-ID') === group,
  );
}

function periodsOf({ path: playlist, periods, representations }: MpdDocument): Choice[] {
  const byPeriod = Map.groupBy(representations, ({ lineage }) => lineage[1]);
  const reached = representations.flatMap(({ init }) => init ?? []);
  return periods.map(({ element, line }) => {
    const own = (byPeriod.get(element) ?? []).filter(({ lineage }) => isPlayedByAll(lineage));
    const played = own.flatMap(({ init, lineage, segments }) => {
      if (init === null || segments.length === 0) return [];
      const kinds = statedKinds(lineage);
      const codecs = codecsIn(innermostAttribute(lineage, 'codecs'));
      const protection = new Set(protectionOf(lineage));
      return [{ playlist, init, kinds, codecs, protection, sections: new Set<number>() }];
    });
    return { playlist, line, played, reached, codecs: null };
  });
}

/** A rendition as it was read; null where its init segment is missing. */
export interface ReadInit {
  readonly listed: { readonly init: MediaPart };
  readonly read: Pick<ReadRendition, 'handlers' | 'codecs' | 'binding' | 'manifest'> | null;
}

/** Names the manifest of a rendition; copies of it may differ in bytes that nobody signed. */
export function idOf({ binding, manifest }: Pick<ReadRendition, 'binding' | 'manifest'>): string | number | null {
  return binding?.id ?? manifest;
}

/**
 * Finds the playlists that play media of several signed publications one after the other, or offer them as alternatives: nobody signed
 * that. Renditions that were signed one by one may belong together; a manifest that binds several is that of a whole publication.
 */
export function findJoinedPublications(
  listings: readonly RenditionListing[],
  choices: readonly Choice[],
  renditions: readonly ReadInit[],
): FoundInPlaylist[] {
  const readOf = new Map(renditions.map(({ listed, read }) => [partKey(listed.init), read]));
  const offered = [...Map.groupBy(choices, ({ playlist }) => playlist)].flatMap(([playlist, own]) => {
    const reads = own.flatMap(({ played }) => played.flatMap(({ init }) => readOf.get(partKey(init)) ?? []));
    const ids = new Set(reads.flatMap((read) => idOf(read) ?? []));
    if (ids.size < 2 || reads.every(({ binding }) => (binding?.maps.length ?? 0) < 2)) return [];
    return [ambiguous(playlist, 'it offers media of several signed publications')];
  });
  const joined = [...Map.groupBy(listings, ({ playlist }) => playlist)].flatMap(([playlist, own]) => {
    const sections = new Map<number | RenditionListing, Set<string | number>>();
    for (const listing of own) {
      const read = listing.init && readOf.get(partKey(listing.init.part));
      const id = read && idOf(read);
      if (id == null) continue;
      for (const { section, window } of listing.fragments) {
        // The sections of an HLS playlist follow one another; the renditions of a period play together.
        const key = window === null ? listing : section;
        sections.set(key, (sections.get(key) ?? new Set()).add(id));
      }
    }
    const [first, ...others] = sections.values();
    const isJoined = others.some((ids) => ![...ids].some((id) => first?.has(id)));
    return isJoined ? [ambiguous(playlist, 'it plays media of several signed publications one after the other')] : [];
  });
  return [...offered, ...joined];
}

/** Returns a codec that is named and is none of the media; null where there is none, or nothing is known of the media. */
function otherCodec(named: readonly Codec[] | null, own: readonly Codec[]): string | null {
  return own.length === 0 ? null : (named?.find((each) => !own.some((codec) => isOf(each, codec)))?.id ?? null);
}

/** Returns true where pictures and sound are said to be encrypted, and not for the same systems. */
function areProtectedApart(
  offered: readonly { readonly read: Pick<ReadRendition, 'handlers'>; readonly protection: ReadonlySet<string> }[],
): boolean {
  const [pictures, sound] = KINDS.map(
    ([handler]) =>
      new Set(offered.flatMap(({ read, protection }) => (read.handlers.has(handler) ? [...protection] : []))),
  );
  if (pictures === undefined || sound === undefined || pictures.size === 0 || sound.size === 0) return false;
  return pictures.size !== sound.size || [...pictures].some((scheme) => !sound.has(scheme));
}

const KINDS = [
  ['vide', 'video', 'pictures'],
  ['soun', 'audio', 'sound'],
] as const;

/**
 * Finds the choices that offer pictures without the sound that is signed with them, or name no codec of one of the two, periods without
 * pictures, and choices with other discontinuities than those of the sound: some players leave out what they cannot place.
 */
export function findSilentChoices(choices: readonly Choice[], renditions: readonly ReadInit[]): FoundInPlaylist[] {
  const readOf = new Map(renditions.map(({ listed, read }) => [partKey(listed.init), read]));
  const withSound = new Set(renditions.flatMap(({ read }) => (read?.handlers.has('soun') ? [idOf(read)] : [])));
  const found = choices.flatMap(({ playlist, line, played, reached, codecs }): FoundInPlaylist[] => {
    const missing = (problem: string) => [{ ...ambiguous(playlist, problem, line), kind: 'missing' } as const];
    const offered = played.flatMap(({ init, ...stated }) => {
      const read = readOf.get(partKey(init)) ?? null;
      return read === null ? [] : [{ ...stated, read }];
    });
    const manifestsOf = (handler: string, kind: string) =>
      offered.flatMap(({ read, kinds }) => {
        const { handlers } = read;
        // Pictures and sound in one are said to be pictures.
        const isStated = (each: string): boolean => each === kind || (each === 'video' && handlers.has('vide'));
        return handlers.has(handler) && [...kinds].every(isStated) ? [idOf(read)] : [];
      });
    const sounds = new Set(manifestsOf('soun', 'audio'));
    const pictures = manifestsOf('vide', 'video');
    if (pictures.some((id) => withSound.has(id) && !sounds.has(id))) {
      return missing('it offers pictures without the sound that was signed with them');
    }
    const named = codecs?.every(({ kind }) => kind !== null) ? codecs.map(({ kind }) => kind) : null;
    const unnamed = KINDS.find(
      ([handler, kind]) => named?.includes(kind) === false && offered.some(({ read }) => read.handlers.has(handler)),
    );
    if (unnamed !== undefined) {
      return missing(`its CODECS leave out the ${unnamed[2]} that it offers, and so do some players`);
    }
    // Text is no reason for players to leave out a variant.
    const ofMedia = codecs?.filter(({ kind }) => kind !== 'text') ?? null;
    const reads = reached.map((init) => readOf.get(partKey(init)) ?? null);
    const ofReached = reads.includes(null) ? [] : reads.flatMap((read) => read?.codecs ?? []);
    const [other = otherCodec(ofMedia, ofReached)] = offered.flatMap((each) => {
      return otherCodec(each.codecs, each.read.codecs) ?? [];
    });
    if (other !== null) {
      const problem = `it says that what it offers is ${other}, which it is not: some players leave out what they do not know`;
      return [ambiguous(playlist, problem, line)];
    }
    if (reads.some((read) => read?.handlers.has('vide')) && pictures.length === 0) {
      return missing('it offers no pictures that all players play');
    }
    if (areProtectedApart(offered)) {
      const problem =
        'it protects pictures and sound in different ways, and some players leave out what they cannot decrypt';
      return [ambiguous(playlist, problem, line)];
    }
    const problem = 'what plays together has different discontinuities, and some players leave out a part of it';
    const sections = new Set(played.map((each) => [...each.sections].join()));
    return sections.size > 1 ? [ambiguous(playlist, problem, line)] : [];
  });
  // A variant is told once, whichever sounds of its group are none.
  return onceByLine(found);
}
