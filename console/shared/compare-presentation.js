// @ts-nocheck
// Written by "npm run docs" from src/publications/presentation/compare-presentation.ts: change that.
import {
  base64,
  digestOfList,
  foldedPath,

  listPlaylists,

} from './presentation.js';

/** A playlist of a folder that is compared with what was signed. */

/** A difference between a folder and the presentation that was signed. */

/** The result of a comparison: as it was signed where there is no difference. */

/**
 * Compares the playlists of a folder with a signed presentation: each has to be a signed one, with the files that it names.
 * The folder may be one above or below the one that was signed. A signed playlist that is not there is no difference,
 * unless one that is there names it, a folder has its name, of which servers send a page, a file has it in other capitals, or a media
 * playlist stands alone and a playlist that may have named it is missing. `otherPaths` are those of playlists that are there and are not compared, and those of
 * folders, with a slash at their end.
 */
export function comparePresentation(
  signed              ,
  playlists                             ,
  otherPaths                   ,
)                         {
  return 'uris' in signed ? compareList(signed, playlists, otherPaths) : compareDigest(signed, playlists);
}

/**
 * Returns those of the paths that are the paths of signed playlists, wherever the root that was signed may lie by `playlists`. None are
 * known where a digest stands for the list: it covers all playlists or none.
 */
export function signedPathsAmong(
  signed              ,
  playlists                                                ,
  paths                   ,
)           {
  if (!('uris' in signed)) return [];
  const uris = new Set               (signed.uris.map(({ uri }) => uri));
  const relocations = relocationsOf(signed.uris, playlists);
  return paths.filter((path) => relocations.some((relocate) => uris.has(relocate(path))));
}

/** Returns true where all signed fragments that a playlist names are known. */
function knows({ fragments }                )          {
  return fragments !== undefined;
}

function compareList(
  { uris }                  ,
  playlists                             ,
  otherPaths                   ,
)                         {
  const own = playlists.filter(({ isOfAnother }) => isOfAnother !== true);
  const comparisons = relocationsOf(uris, own).map((relocate) => compareAt(relocate, uris, playlists, otherPaths));
  return comparisons.reduce((best, each) => (each.differences.length < best.differences.length ? each : best));
}

function compareAt(
  relocate            ,
  uris                           ,
  all                             ,
  otherPaths                   ,
)                         {
  const signedOf = new Map                               (uris.map((each) => [each.uri, each]));
  const playlists = all.filter(({ isOfAnother, path }) => isOfAnother !== true || signedOf.has(relocate(path)));
  const differences = playlists.flatMap((playlist)                           => {
    const moved = movedTo(relocate, playlist);
    const signed = moved === null ? undefined : signedOf.get(moved.path);
    if (moved === null || signed === undefined) return [{ part: 'playlist', kind: 'added', playlist: playlist.path }];
    const isSame = signed.size === moved.sizeBytes && signed.hash === base64(moved.digest);
    if (!isSame) return [{ part: 'playlist', kind: 'altered', playlist: playlist.path }];
    const [here] = listPlaylists([moved]).uris;
    const areSame = here?.files === signed.files && (!knows(moved) || here?.fragments === signed.fragments);
    return areSame ? [] : [{ part: 'files', kind: 'altered', playlist: playlist.path }];
  });
  const there = [...playlists.map(({ path }) => path), ...otherPaths];
  const present = new Set(there.map(relocate));
  const absent = uris.map(({ uri }) => uri).filter((uri) => !present.has(uri));
  const needed = new Set(playlists.flatMap(({ names }) => names.map(relocate)));
  const lost = absent.filter((uri) => needed.has(uri));
  differences.push(...lost.map((playlist) => ({ part: 'playlist', kind: 'missing', playlist })         ));
  const others = new Set(otherPaths.map((path) => foldedPath(relocate(path) ?? '')));
  const isReplaced = (uri        )          => others.has(foldedPath(uri)) || others.has(foldedPath(`${uri}/`));
  const replaced = new Set(absent.filter((uri) => !needed.has(uri) && isReplaced(uri)));
  differences.push(...[...replaced].map((playlist) => ({ part: 'playlist', kind: 'altered', playlist })         ));
  const standsAlone = playlists.some(({ isEntry, isHlsMedia }) => isEntry && isHlsMedia);
  const parent = standsAlone ? absent.find((uri) => /\.m3u8?$/i.test(uri)) : undefined;
  if (parent !== undefined) differences.push({ part: 'playlist', kind: 'missing', playlist: parent });
  return { differences, absent: absent.filter((uri) => !needed.has(uri) && !replaced.has(uri)) };
}

function compareDigest(signed                    , playlists                             )                         {
  const folder = commonFolderOf(playlists.map(({ path }) => path.normalize('NFC')));
  const isSigned = [relocation('', ''), relocation(folder, '')].some((relocate) => {
    const moved = playlists.flatMap((playlist) => movedTo(relocate, playlist) ?? []);
    const { hash, fragments } = digestOfList(listPlaylists(moved));
    return hash === signed.hash && (!playlists.every(knows) || fragments === signed.fragments);
  });
  return { differences: isSigned ? [] : [{ part: 'playlist', kind: 'unreadable', playlist: null }], absent: [] };
}

/** Returns the path that a file had when it was signed, in NFC; null where it lies outside of what was. */

/** Moves a playlist, and what it names, to where it was signed; null where it lies outside of what was. */
function movedTo(relocate            , playlist                )                        {
  const path = relocate(playlist.path);
  // A file outside the root that was signed was not named from inside it: none in a folder has such a path.
  const named = playlist.named.map((file) => ({ ...file, path: relocate(file.path) ?? `../${file.path}` }));
  return path === null ? null : { ...playlist, path, named };
}

/**
 * Finds where the root that was signed may lie: at the same place, and where the digest of a playlist and the ending of its path agree
 * with those of a signed one. There are several where playlists of several programmes are alike.
 */
function relocationsOf(
  uris                           ,
  playlists                                                ,
)                                         {
  const byHash = Map.groupBy(uris, ({ hash }) => hash);
  const found = new Map                    ();
  for (const { path, digest } of playlists) {
    const here = path.normalize('NFC');
    for (const { uri } of byHash.get(base64(digest)) ?? []) {
      const above = here.endsWith(`/${uri}`) ? here.slice(0, here.length - uri.length) : '';
      const below = uri.endsWith(`/${here}`) ? uri.slice(0, uri.length - here.length) : '';
      if (above !== below) found.set(`${above}\n${below}`, relocation(above, below));
    }
  }
  return [relocation('', ''), ...found.values()];
}

/** Moves what lies below the folder `above` to below the folder `below`. */
function relocation(above        , below        )             {
  return (path) => {
    const here = path.normalize('NFC');
    return here.startsWith(above) ? (below + here.slice(above.length)).normalize('NFC') : null;
  };
}

/** Returns the folder that all paths lie in, with a slash at its end; empty where there is none. */
function commonFolderOf(paths                   )         {
  const [first = '', ...others] = paths;
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  for (const path of others) {
    while (!path.startsWith(folder)) folder = folder.slice(0, folder.lastIndexOf('/', folder.length - 2) + 1);
  }
  return folder;
}
