/**
 * Absolute paths (or addresses), each with whom it belongs to, that can be asked in time proportional to a path's depth
 * whether one is, holds or lies inside another.
 */
export class PlaceSet<Owner> {
  readonly #owners = new Map<string, Owner>();
  /** For every folder above a place, how many places lie inside it. */
  readonly #inside = new Map<string, number>();

  /** A place that is there already goes to the new owner. */
  add(path: string, owner: Owner): void {
    this.delete(path);
    this.#owners.set(path, owner);
    for (const folder of foldersAbove(path)) this.#inside.set(folder, (this.#inside.get(folder) ?? 0) + 1);
  }

  delete(path: string): void {
    if (!this.#owners.delete(path)) return;
    for (const folder of foldersAbove(path)) {
      const count = (this.#inside.get(folder) ?? 0) - 1;
      if (count > 0) this.#inside.set(folder, count);
      else this.#inside.delete(folder);
    }
  }

  /** The owners of places that `path` is, holds or lies inside. */
  *touching(path: string): Iterable<Owner> {
    for (const place of [path, ...foldersAbove(path)]) {
      const owner = this.#owners.get(place);
      if (owner !== undefined) yield owner;
    }
    // Every place is looked at only where it is known that some lie inside.
    if (!this.#inside.has(path)) return;
    const folder = path.endsWith('/') ? path : `${path}/`;
    for (const [place, owner] of this.#owners) if (place.startsWith(folder)) yield owner;
  }
}

/** `/a/b/c` → `/a/b`, `/a`, `/`. */
function* foldersAbove(path: string): Iterable<string> {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) yield path.slice(0, end);
  if (path.startsWith('/') && path !== '/') yield '/';
}
