// @ts-nocheck
// Written by "npm run docs" from src/publications/presentation/presentation.ts: change that.
import { sha256 } from '@noble/hashes/sha2.js';
import * as cborg from 'cborg';

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

/** A Merkle map of the manifest, which binds an init segment with its `count` fragments. */

/** An init segment of a signed rendition, and the map that binds it. */

/** A signed fragment: its position, from 0, among those that the map binds. */

/** A playlist of a publication, and the files that it names, in the order of their first mention. */

/** A playlist as the assertion states it: `c2pa.hash.collection.data` has the same shape, without `files`. */

/** The content of the assertion: a list of all playlists, or a digest over that list. */

/** All playlists of a publication, sorted by `uri`. */

/** A digest over the list, where the list is too long for a manifest. */

/**
 * Returns what is equal for paths that some servers take for one: in capitals, those of letters that are capitals themselves included,
 * with letters composed, without empty segments.
 */
export function foldedPath(path        )         {
  return path
    .replace(/^\/+|\/+(?=\/)/g, '')
    .toLowerCase()
    .toUpperCase()
    .normalize('NFC');
}

/** Bytes of the list in a manifest; where it takes more, a digest stands instead of it. */
const MAX_LIST_BYTES = 8 * 1024;

/** Returns true for the names of files that a presentation lists. */
export function isPresented(path        )          {
  return /\.(?:m3u8?|mpd)$/i.test(path);
}

/** Returns the list of the playlists of a publication. */
export function listPlaylists(playlists                           )                   {
  const uris = playlists.map(
    ({ path, sizeBytes, digest, named, fragments = [] })                 => ({
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
export function presentationOf(list                  , hasRoom         )               {
  return hasRoom && sizeOf(list) <= MAX_LIST_BYTES ? list : digestOfList(list);
}

/** Returns the assertion of a presentation, for the SDK: it stores it as CBOR. */
export function presentationAssertion(presentation              )                {
  const data = { version: PRESENTATION_VERSION, alg: PRESENTATION_ALGORITHM, ...presentation };
  return { label: PRESENTATION_LABEL, data };
}

/** Sizes in bytes from which on an integer takes its largest form in CBOR. */
const LARGEST_SIZE_BYTES = Number.MAX_SAFE_INTEGER;

/** Returns a list as large as that of playlists at these paths can be, for measuring. */
export function placeholderList(paths                   )                   {
  const digest = new Uint8Array(DIGEST_SIZE_BYTES);
  const file = { path: '', sizeBytes: LARGEST_SIZE_BYTES, digest };
  const fragments = [{ uniqueId: 0, localId: 0, location: 1, count: 1 }];
  return listPlaylists(paths.map((path) => ({ ...file, path, named: [file], fragments })));
}

/**
 * Returns a digest over a list: SHA-256 of the deterministic CBOR (RFC 8949 §4.2.1) of `[[uri, size, hash, files or null], …]`, and
 * apart from it, because players do not know all fragments, of `[[uri, fragments], …]`.
 */
export function digestOfList({ uris }                  )                     {
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
export function digestOfFiles(files                         )             {
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
function areWhole(named                         , fragments                          )          {
  const keyOf = ({ uniqueId, localId }          )         => `${uniqueId}/${localId}`;
  const ofMaps = Map.groupBy(fragments, keyOf);
  const bound = [...named.filter((file) => 'uniqueId' in file), ...fragments];
  return (
    bound.every((each) => ofMaps.get(keyOf(each))?.length === each.count) &&
    [...ofMaps.values()].every((own) => own.every(({ location }, index) => location === index))
  );
}

/** Returns the digest over fragments: SHA-256 of the deterministic CBOR of `[[uniqueId, localId, location], …]`. */
function digestOfFragments(fragments                          )             {
  return digestOf(fragments.map(({ uniqueId, localId, location }) => [uniqueId, localId, location]));
}

function digestOf(rows                    )             {
  return sha256(cborg.encode(rows));
}

/** The size of a list in a manifest, in bytes; the SDK stores digests as text. */
function sizeOf({ uris }                  )         {
  return cborg.encode(uris).length;
}

/** Compares by UTF-16 code units, as JavaScript sorts by default. */
function byUri(first                , second                )         {
  return first.uri < second.uri ? -1 : first.uri > second.uri ? 1 : 0;
}

export function base64(bytes            )         {
  return btoa(String.fromCharCode(...bytes));
}

function bytesOf(text        )             {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
