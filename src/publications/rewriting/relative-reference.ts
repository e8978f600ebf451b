/** The relative reference (RFC 3986 §4.2) that leads from a file or folder ending in `/` to another path of the folder. */
export function relativeReference(from: string, to: string): string {
  const fromFolders = from.split('/').slice(0, -1);
  const target = to.split('/');
  let shared = 0;
  while (shared < fromFolders.length && shared < target.length - 1 && fromFolders[shared] === target[shared])
    shared += 1;
  const up = fromFolders.slice(shared).map(() => '..');
  return [...up, ...target.slice(shared).map(encodeURIComponent)].join('/');
}
