import { sha256 } from '@noble/hashes/sha2.js';
import * as cborg from 'cborg';
import type { LateAssertion } from '#provenance/manifest-request.ts';

/**
 * The label of the assertion that says what a signed publication presents: its playlists, and the files that they name.
 * Browsers run this module too (`scripts/console-modules.ts`), so it uses nothing of Node.
 */
export const PRESENTATION_LABEL = 'com.attestream.presentation';

/** The version of its layout. */
export const PRESENTATION_VERSION = 1;

/** The hash of playlists and files, and the length of its digests in bytes. */
export const PRESENTATION_ALGORITHM = 'sha256';
const DIGEST_SIZE_BYTES = 32;

/** A file of a publication: its path below the root of the output, its size in bytes, and the SHA-256 of its bytes. */
export interface HashedFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly digest: Uint8Array;
}

/** A Merkle map of the manifest, which binds an init segment with its `count` fragments. */
interface BoundMap {
  readonly uniqueId: number;
  readonly localId: number;
  readonly count: number;
}

/** An init segment of a signed rendition, and the map that binds it. */
export interface BoundInit extends BoundMap {
  readonly path: string;
}

/** A signed fragment: its position, from 0, among those that the map binds. */
export interface BoundFragment extends BoundMap {
  readonly location: number;
}

/** A playlist of a publication, and the files that it names, in the order of their first mention. */
export interface HashedPlaylist extends HashedFile {
  /** All but signed fragments. */
  readonly named: readonly (HashedFile | BoundInit)[];
  /** The signed fragments; absent where some are not known, and nothing can be said about all. */
  readonly fragments?: readonly BoundFragment[];
}

/** A playlist as the assertion states it: `c2pa.hash.collection.data` has the same shape, without `files`. */
export interface SignedPlaylist {
  /** The path below the root, in NFC, segments separated by `/`. */
  readonly uri: string;
  readonly size: number;
  /** SHA-256 in base64. */
  readonly hash: string;
  /** The digest over the files that it names, in base64; absent where it names none. */
  readonly files?: string;
  /** The digest over the signed fragments that it names, in base64; absent where it names all of each map in the signed order: of each of which it names anything. */
  readonly fragments?: string;
}

/** The content of the assertion: a list of all playlists, or a digest over that list. */
export type Presentation = PresentationList | PresentationDigest;

/** All playlists of a publication, sorted by `uri`. */
export interface PresentationList {
  readonly uris: readonly SignedPlaylist[];
}

/** A digest over the list, where the list is too long for a manifest. */
export interface PresentationDigest {
  /** The number of playlists in the list. */
  readonly count: number;
  /** SHA-256 in base64. */
  readonly hash: string;
  /** A digest over those of the signed fragments that playlists name, in base64; absent where none has one. */
  readonly fragments?: string;
}

/**
 * Returns what is equal for paths that some servers take for one: in capitals, those of letters that are capitals themselves included,
 * with letters composed, without empty segments.
 */
export function foldedPath(path: string): string {
  return path
    .replace(/^\/+|\/+(?=\/)/g, '')
    .toLowerCase()
    .toUpperCase()
    .normalize('NFC');
}

/** Bytes of the list in a manifest; where it takes more, a digest stands instead of it. */
const MAX_LIST_BYTES = 8 * 1024;

/** Returns true for the names of files that a presentation lists. */
export function isPresented(path: string): boolean {
  return /\.(?:m3u8?|mpd)$/i.test(path);
}

/** Returns the list of the playlists of a publication. */
export function listPlaylists(playlists: readonly HashedPlaylist[]): PresentationList {
  const uris = playlists.map(
    ({ path, sizeBytes, digest, named, fragments = [] }): SignedPlaylist => ({
      uri: path.normalize('NFC'),
      size: sizeBytes,
      hash: base64(digest),
      ...(named.length > 0 && { files: base64(digestOfFiles(named)) }),
      ...(!areWhole(named, fragments) && { fragments: base64(digestOfFragments(fragments)) }),
    }),
  );
  return { uris: uris.sort(byUri) };
}

/** Returns what a manifest states of a list: the list itself where it is short, and else a digest over it. */
export function presentationOf(list: PresentationList, hasRoom: boolean): Presentation {
  return hasRoom && sizeOf(list) <= MAX_LIST_BYTES ? list : digestOfList(list);
}

/** Returns the assertion of a presentation, for the SDK: it stores it as CBOR. */
export function presentationAssertion(presentation: Presentation): LateAssertion {
  const data = { version: PRESENTATION_VERSION, alg: PRESENTATION_ALGORITHM, ...presentation };
  return { label: PRESENTATION_LABEL, data };
}

/** Sizes in bytes from which on an integer takes its largest form in CBOR. */
const LARGEST_SIZE_BYTES = Number.MAX_SAFE_INTEGER;

/** Returns a list as large as that of playlists at these paths can be, for measuring. */
export function placeholderList(paths: readonly string[]): PresentationList {
  const digest = new Uint8Array(DIGEST_SIZE_BYTES);
  const file = { path: '', sizeBytes: LARGEST_SIZE_BYTES, digest };
  const fragments = [{ uniqueId: 0, localId: 0, location: 1, count: 1 }];
  return listPlaylists(paths.map((path) => ({ ...file, path, named: [file], fragments })));
}

/**
 * Returns a digest over a list: SHA-256 of the deterministic CBOR (RFC 8949 §4.2.1) of `[[uri, size, hash, files or null], …]`, and
 * apart from it, because players do not know all fragments, of `[[uri, fragments], …]`.
 */
export function digestOfList({ uris }: PresentationList): PresentationDigest {
  const rows = uris.map(({ uri, size, hash, files }) => [
    uri,
    size,
    bytesOf(hash),
    files === undefined ? null : bytesOf(files),
  ]);
  const partial = uris.flatMap(({ uri, fragments }) => (fragments === undefined ? [] : [[uri, bytesOf(fragments)]]));
  return {
    count: uris.length,
    hash: base64(digestOf(rows)),
    ...(partial.length > 0 && { fragments: base64(digestOf(partial)) }),
  };
}

/**
 * Returns the digest over files: SHA-256 of the deterministic CBOR of `[[uri, size, hash], …]`, with `[uri, uniqueId, localId]`
 * for an init segment. No tree binds a path: another signed rendition at the path of one would play in its place.
 */
export function digestOfFiles(files: HashedPlaylist['named']): Uint8Array {
  const rows = files.map((file) => {
    const uri = file.path.normalize('NFC');
    return 'digest' in file ? [uri, file.sizeBytes, new Uint8Array(file.digest)] : [uri, file.uniqueId, file.localId];
  });
  return digestOf(rows);
}

/**
 * Returns true where fragments are all of each map that binds one of them or a named init segment, in the signed order: nothing more is
 * to be said of them. Else other signed fragments at their paths would play in their place, because no tree binds a path.
 */
function areWhole(named: HashedPlaylist['named'], fragments: readonly BoundFragment[]): boolean {
  const keyOf = ({ uniqueId, localId }: BoundMap): string => `${uniqueId}/${localId}`;
  const ofMaps = Map.groupBy(fragments, keyOf);
  const bound = [...named.filter((file) => 'uniqueId' in file), ...fragments];
  return (
    bound.every((each) => ofMaps.get(keyOf(each))?.length === each.count) &&
    [...ofMaps.values()].every((own) => own.every(({ location }, index) => location === index))
  );
}

/** Returns the digest over fragments: SHA-256 of the deterministic CBOR of `[[uniqueId, localId, location], …]`. */
function digestOfFragments(fragments: readonly BoundFragment[]): Uint8Array {
  return digestOf(fragments.map(({ uniqueId, localId, location }) => [uniqueId, localId, location]));
}

function digestOf(rows: readonly unknown[]): Uint8Array {
  return sha256(cborg.encode(rows));
}

/** The size of a list in a manifest, in bytes; the SDK stores digests as text. */
function sizeOf({ uris }: PresentationList): number {
  return cborg.encode(uris).length;
}

/** Compares by UTF-16 code units, as JavaScript sorts by default. */
function byUri(first: SignedPlaylist, second: SignedPlaylist): number {
  return first.uri < second.uri ? -1 : first.uri > second.uri ? 1 : 0;
}

export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
