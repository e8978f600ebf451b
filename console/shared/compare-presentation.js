// @ts-nocheck
// Written by "npm run docs" from src/publications/presentation/compare-presentation.ts: change that.
import {
  base64,
  digestOfFiles,
  digestOfList,

  listPlaylists,

} from './presentation.js';

/** A playlist of a folder that is compared with what was signed. */

/** A difference between a folder and the presentation that was signed. */

/** The result of a comparison: as it was signed where there is no difference. */

/**
 * Compares the playlists of a folder with a signed presentation: each has to be a signed one, with the files that it names.
 * The folder may be one above or below the one that was signed. A signed playlist that is not there is no difference,
 * unless one that is there names it, or a media playlist stands alone and a playlist that may have named it is missing. `otherPaths` are those of
 * playlists that are there and are not compared.
 */
export function comparePresentation(
  signed              ,
  playlists                             ,
  otherPaths                   ,
)                         {
  return 'uris' in signed ? compareList(signed, playlists, otherPaths) : compareDigest(signed.hash, playlists);
}

function compareList(
  { uris }                  ,
  playlists                             ,
  otherPaths                   ,
)                         {
  const relocate = relocationOf(uris, playlists);
  const signedOf = new Map(uris.map((each) => [each.uri, each]));
  const differences = playlists.flatMap((playlist)                           => {
    const moved = relocate(playlist);
    const signed = moved === null ? undefined : signedOf.get(moved.path.normalize('NFC'));
    if (moved === null || signed === undefined) return [{ part: 'playlist', kind: 'added', playlist: playlist.path }];
    const isSame = signed.size === moved.sizeBytes && signed.hash === base64(moved.digest);
    if (!isSame) return [{ part: 'playlist', kind: 'altered', playlist: playlist.path }];
    const files = moved.named.length === 0 ? undefined : base64(digestOfFiles(moved.named));
    return files === signed.files ? [] : [{ part: 'files', kind: 'altered', playlist: playlist.path }];
  });
  const there = [...playlists.map(({ path }) => path), ...otherPaths];
  const uriOf = (path        )                     => relocate({ ...NO_FILE, path })?.path.normalize('NFC');
  const present = new Set(there.map(uriOf));
  const absent = uris.map(({ uri }) => uri).filter((uri) => !present.has(uri));
  const needed = new Set(playlists.flatMap(({ names }) => names.map(uriOf)));
  const lost = absent.filter((uri) => needed.has(uri));
  differences.push(...lost.map((playlist) => ({ part: 'playlist', kind: 'missing', playlist })         ));
  const standsAlone = playlists.some(({ isEntry, isHlsMedia }) => isEntry && isHlsMedia);
  const parent = standsAlone ? absent.find((uri) => /\.m3u8?$/i.test(uri)) : undefined;
  if (parent !== undefined) differences.push({ part: 'playlist', kind: 'missing', playlist: parent });
  return { differences, absent: absent.filter((uri) => !needed.has(uri)) };
}

function compareDigest(hash        , playlists                             )                         {
  const folder = commonFolderOf(playlists.map(({ path }) => path));
  const isSigned = [playlists, withoutFolder(playlists, folder)].some(
    (each) => digestOfList(listPlaylists(each)).hash === hash,
  );
  return { differences: isSigned ? [] : [{ part: 'playlist', kind: 'unreadable', playlist: null }], absent: [] };
}

const NO_FILE = { sizeBytes: 0, digest: new Uint8Array(), named: [] };

/** Moves a playlist, and what it names, to where it was signed; null where it lies outside what was signed. */

/**
 * Finds where the root that was signed lies, by a playlist whose digest and the ending of whose path agree with a signed one;
 * entries first. The same root where none does.
 */
function relocationOf(uris                           , playlists                             )             {
  const byHash = Map.groupBy(uris, ({ hash }) => hash);
  const ordered = [...playlists].sort((first, second) => Number(second.isEntry) - Number(first.isEntry));
  const found = ordered.flatMap(({ path, digest }) =>
    (byHash.get(base64(digest)) ?? []).flatMap(({ uri }) => {
      const here = path.normalize('NFC');
      if (here === uri || here.endsWith(`/${uri}`))
        return { above: here.slice(0, here.length - uri.length), below: '' };
      return uri.endsWith(`/${here}`) ? { above: '', below: uri.slice(0, uri.length - here.length) } : [];
    }),
  );
  const same = found.find(({ above, below }) => above === '' && below === '');
  const { above, below } = same ?? found[0] ?? { above: '', below: '' };
  const move =                                         (file      )              => {
    const path = file.path.normalize('NFC');
    return path.startsWith(above) ? { ...file, path: below + path.slice(above.length) } : null;
  };
  return (playlist) => {
    const moved = move(playlist);
    // A file outside the root that was signed was not named from inside it: none in a folder has such a path.
    const named = playlist.named.map((file) => move(file) ?? { ...file, path: `../${file.path}` });
    return moved === null ? null : { ...moved, named };
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

function withoutFolder(playlists                           , folder        )                   {
  const move =                                         (file      )       => ({
    ...file,
    path: file.path.startsWith(folder) ? file.path.slice(folder.length) : `../${file.path}`,
  });
  return playlists.map((playlist) => ({ ...move(playlist), named: playlist.named.map(move) }));
}
