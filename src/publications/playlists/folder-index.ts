import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { type SourceFolder, sizesIn, type UnlistedFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { PlaylistPosition } from '#errors/entry.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { ByteRange, MediaPart } from '../media-part.ts';
import { foldedPath } from '../presentation/presentation.ts';
import { MAX_ADDRESS_LENGTH } from './limits.ts';
import { OtherEncodings } from './other-encodings.ts';
import type { PlaylistFinding } from './playlist-finding.ts';
import { ServedNames } from './served-names.ts';

/**
 * The address that a folder gets while references are resolved, where it has none of its own. References are resolved
 * below a path segment, so that `../` out of the folder shows instead of being clamped at the root. Nobody can guess the
 * segment: a reference that names the folder itself would lead players elsewhere.
 */
const FOLDER_URL = `http://folder.invalid/${randomUUID()}/`;

/** A path below its base of letters that mean themselves in every address, as most references of large playlists are. */
const PLAIN_REFERENCE = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;
/** A dot segment, however it is written, an empty one, or an encoded letter that needs no encoding (RFC 3986 §2.3). */
const UNUSUAL = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)|\/\/|%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i;
/** The same of a directory, empty or with a slash at its end. */
const PLAIN_DIRECTORY = /^(?:[\w.-]+\/)*$/;

/** Parameters of a query by which object stores (S3, Azure, Google) send a part of a file or an older version, or say something else of it. */
const SELECTING = /^(?:partNumber|versionId|snapshot|generation|response-.+)$/i;

/** The base of references: a playlist, or an address that an MPD states for them. */
export interface Base {
  readonly url: URL;
  /** The folder that it lies in, with a slash at its end; null where it does not say one plainly. */
  readonly directory: string | null;
  /** The parts of it that are written in an unusual way: addresses below keep those. */
  readonly unusual: string;
  /** Bases that some players take for it. */
  readonly others: readonly URL[];
  /** Itself, with all others and those around it, however they are read. */
  readonly around: readonly URL[];
  /** The address of the playlist, and the references that made the base, as they are written. */
  readonly written: readonly string[];
}

/** The path that a reference stands for. */
interface NamedPath {
  /** Undefined where a percent sign in it encodes nothing. */
  readonly path: string | undefined;
  /** The parts of the address beside the path: a query, and characters in an unusual form. */
  readonly beside: string;
  /** Paths that some players and servers take the address for instead. */
  readonly others: readonly string[];
}

/**
 * The files of a folder, found by the references that playlists make to them (RFC 3986 §5, relative to a base). An address
 * stands for one path: decoded once, without query and fragment, byte for byte.
 */
export class FolderIndex {
  readonly #sizes: ReadonlyMap<string, number>;
  readonly #root: URL;
  readonly #addFile: UnlistedFolder['addFile'] | undefined;
  /** Files that a byte range passes by one byte. */
  readonly #passed = new Set<string>();
  readonly #encodings: OtherEncodings;
  /** Files that were named, with what their address has beside their path. */
  readonly #named = new Map<string, string>();
  /** Of each playlist the first address of each kind that can be read in two ways. */
  readonly #ambiguous = new Map<string, PlaylistFinding>();
  /** Named paths, with the first position of each: compared with what servers may send for it when somebody asks. */
  readonly #noted = new Map<string, { readonly named: NamedPath; readonly position: PlaylistPosition }>();
  /** Paths that were named without there being a file, folded. */
  readonly #missed = new Set<string>();
  /** Made when it is asked for. */
  #served: ServedNames | undefined;
  /** True where nothing is passed over that players may follow. */
  readonly isComplete: boolean;

  /**
   * In an unlisted folder, references are reported to it and taken to exist. With `keep`, files that a playlist names and
   * that are not there are located all the same: `has` tells them from others.
   */
  constructor(folder: SourceFolder | UnlistedFolder, missing: 'refuse' | 'keep' = 'refuse') {
    this.isComplete = missing === 'keep';
    this.#addFile = 'addFile' in folder ? folder.addFile : undefined;
    this.#sizes = sizesIn(folder);
    this.#encodings = new OtherEncodings(this.paths);
    this.#root = new URL(folder.baseUrl ?? FOLDER_URL);
  }

  get paths(): Iterable<string> {
    return this.#sizes.keys();
  }

  /** True for a folder that cannot be listed: no file is known to be missing. */
  get isUnlisted(): boolean {
    return this.#addFile !== undefined;
  }

  get fileCount(): number {
    return this.#sizes.size;
  }

  has(path: string): boolean {
    return this.#sizes.has(path);
  }

  sizeOf(path: string): number | undefined {
    return this.#sizes.get(path);
  }

  /** Returns the base that references inside the file at `path` are relative to. */
  baseOf(path: string): Base {
    const url = this.#urlOf(path);
    return { url, directory: this.#directoryOf(url), unusual: '', others: [], around: [url], written: [url.href] };
  }

  #urlOf(path: string): URL {
    return new URL(path.split('/').map(encodeURIComponent).join('/'), this.#root);
  }

  /** Returns the base that `reference` makes for references below it. Rejects one that leads out of the folder. */
  enter(base: Base, reference: string, position: PlaylistPosition): Base {
    const url = this.#resolve(base, reference, position);
    this.#relativePath(url, reference, position);
    const read = base.around.flatMap((each) => [...this.#basesRead(each, reference)]);
    const own = [...new Map(read.map((each) => [each.href, each])).values()];
    return {
      url,
      directory: this.#directoryOf(url),
      unusual: this.#unusualIn(base, reference, url),
      others: own.filter((each) => each.href !== url.href && this.#directoryOf(each) !== null),
      around: [...base.around, ...own],
      written: [...base.written, reference],
    };
  }

  /** Returns the paths that a reference has, and its base, for players that take the playlist for text in another encoding. */
  #pathsInEncodings({ written }: Base, reference: string): string[] {
    return this.#encodings.readingsOf([...written, reference]).flatMap((read) => {
      const url = read.reduce((around, each) => URL.parse(each, around)?.href ?? around, this.#root.href);
      return this.#pathsBelow(new URL(url), '');
    });
  }

  /** Returns the bases that players read from a reference inside one: resolved or as it is written, with a slash at its end or without. */
  *#basesRead(base: URL, reference: string): Generator<URL> {
    const directory = this.#directoryOf(base);
    const resolved = URL.parse(reference, base.href);
    const written = directory === null ? null : this.#urlOf(posix.join(directory, reference));
    for (const url of [resolved, written]) {
      if (url === null) continue;
      yield url;
      if (!url.pathname.endsWith('/')) yield new URL(`${url.pathname}/`, url);
    }
  }

  /**
   * Returns the path of the file that `reference` names. Throws `PLAYLIST_FILE_MISSING`, `PLAYLIST_MALFORMED`,
   * `PLAYLIST_LEAVES_FOLDER` for one outside the folder, or `PLAYLIST_AMBIGUOUS` where the file has another name.
   */
  locate(base: Base, reference: string, position: PlaylistPosition): string {
    const path = this.#locate(base, reference, position, false);
    if (path !== undefined) return path;
    if (this.isComplete) return this.pathOf(base, reference, position);
    const misread = this.#problemOf(this.#pathNamed(base, reference, position));
    if (misread !== undefined) throw new AppError('PLAYLIST_AMBIGUOUS', { ...position, problem: misread.problem });
    throw new AppError('PLAYLIST_FILE_MISSING', { ...position, reference });
  }

  /** Does the same as `locate`, but returns undefined where there is no such file. */
  tryLocate(base: Base, reference: string, position: PlaylistPosition): string | undefined {
    return this.#locate(base, reference, position, true);
  }

  #locate(base: Base, reference: string, position: PlaylistPosition, mayBeMissing: boolean): string | undefined {
    if (this.#addFile !== undefined) return this.#addNamed(base, reference, position, mayBeMissing);
    const named = this.#plainPath(base, reference) ?? this.#pathNamed(base, reference, position);
    this.#noteServed(named, position);
    const { path, beside } = named;
    if (path === undefined || !this.#sizes.has(path)) return undefined;
    const known = this.#named.get(path);
    if (known === undefined) this.#named.set(path, beside);
    else if (known !== beside) {
      this.#found(`"${path}" has another address elsewhere, and servers may give something else for it`, position);
    }
    return path;
  }

  /** Reports a file to a folder that cannot be listed. */
  #addNamed(base: Base, reference: string, position: PlaylistPosition, mayBeMissing: boolean): string | undefined {
    const named = this.pathOf(base, reference, position);
    // A folder is no file.
    if (named === '' || named.endsWith('/')) return undefined;
    this.#addFile?.(named, this.#resolve(base, reference, position), mayBeMissing);
    return named;
  }

  /** Reads the most common references without resolving, which makes several URLs for each; undefined for others. */
  #plainPath(base: Base, reference: string): NamedPath | undefined {
    const { directory, unusual: beside } = base;
    if (directory === null || !PLAIN_DIRECTORY.test(directory) || !PLAIN_REFERENCE.test(reference)) return undefined;
    return { path: directory + reference, beside, others: this.#otherPaths(base, reference) };
  }

  /** Returns the paths that a reference has by other readings of its base. */
  #otherPaths({ others }: Base, reference: string): string[] {
    return others.flatMap((each) => this.#pathsBelow(each, reference));
  }

  #pathsBelow(base: URL, reference: string): string[] {
    const { origin, pathname } = URL.parse(reference, base.href) ?? base;
    const href = origin + pathname;
    const path = href.startsWith(this.#root.href) ? decodePath(href.slice(this.#root.href.length)) : undefined;
    return path === undefined ? [] : [path];
  }

  #pathNamed(base: Base, reference: string, position: PlaylistPosition): NamedPath {
    const url = this.#resolve(base, reference, position);
    const encoded = this.#relativePath(url, reference, position);
    const { directory } = base;
    const selecting = [...url.searchParams.keys()].find((name) => SELECTING.test(name));
    if (selecting !== undefined) {
      const problem = `an address has "${selecting}" in its query, for which object stores send a part or another version of a file`;
      this.#found(problem, position);
    }
    const others = [
      encoded,
      ...(encoded.includes('+') ? [decodePath(encoded.replaceAll('+', ' ')) ?? encoded] : []),
      // Some pass over parameters of a path (RFC 3986 §3.3).
      ...(encoded.includes(';') ? [decodePath(encoded.replace(/;[^/]*/g, '')) ?? encoded] : []),
      ...this.#pathsInEncodings(base, reference),
      // Some take query and fragment for a part of the name.
      ...(directory === null ? [] : [posix.join(directory, reference)]),
      ...this.#otherPaths(base, reference),
    ];
    return { path: decodePath(encoded), beside: url.search + this.#unusualIn(base, reference, url), others };
  }

  /** Notes that the playlist at a path is read, by whatever address. */
  noteEntry(path: string): void {
    this.#noteServed({ path, beside: '', others: [] }, { playlist: path, line: 1 });
  }

  /** Returns true for a path that is named, whether there is a file or not, and for one by which servers find a file. */
  isServed(path: string): boolean {
    return this.#missed.has(foldedPath(path)) || this.#servedNames.hasFile(path);
  }

  /** Notes an address: servers may send something else for it than the file that it stands for. */
  #noteServed(named: NamedPath, position: PlaylistPosition): void {
    const { path, others } = named;
    if (path !== undefined && !this.#sizes.has(path)) this.#missed.add(foldedPath(path));
    const key = others.length === 0 && path !== undefined ? path : JSON.stringify([path, ...others]);
    if (!this.#noted.has(key)) this.#noted.set(key, { named, position });
  }

  /** Returns a file or folder that some players and servers take an address for, and the problem; undefined where there is none. */
  #problemOf({ path, others }: NamedPath): { readonly found: string; readonly problem: string } | undefined {
    const served = this.#servedNames;
    const own = path === undefined ? undefined : served.besides(path, path);
    const [other] = others.flatMap((each) => (each === path ? [] : (served.besides(each, path) ?? [])));
    const found = own ?? other;
    if (found === undefined) return undefined;
    if (path === undefined || !this.#sizes.has(path)) {
      const named = path === undefined ? 'as the address says' : `"${path}"`;
      return { found, problem: `no file is named ${named}, and some players and servers take "${found}" for it` };
    }
    if (own !== undefined)
      return { found, problem: `"${path}" and "${own}" are one for some file systems and servers` };
    return { found, problem: `an address names "${path}" for some players and servers, and "${other}" for others` };
  }

  get #servedNames(): ServedNames {
    this.#served ??= new ServedNames(this.paths);
    return this.#served;
  }

  #directoryOf(base: URL): string | null {
    const { href } = new URL('.', base);
    return href.startsWith(this.#root.href) ? (decodePath(href.slice(this.#root.href.length)) ?? null) : null;
  }

  #found(problem: string, position: PlaylistPosition, isOfFolder = false): void {
    const known = this.#ambiguous.get(position.playlist);
    if (known === undefined || (isOfFolder && known.isOfFolder !== true))
      this.#ambiguous.set(position.playlist, { ...position, kind: 'ambiguous', problem, isOfFolder });
  }

  /**
   * Returns what of an address is written in an unusual way, with what its base has of that: another host in letters, dots
   * inside the path, encoded letters. Empty where there is nothing.
   */
  #unusualIn({ unusual: inherited }: Base, reference: string, url: URL): string {
    const [, origin = '', path = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*|)([^?#]*)/i.exec(reference) ?? [];
    const isUsualOrigin = origin === '' || origin === url.origin;
    const below = path.replace(/^(?:\.{1,2}\/)+/, '-/');
    return isUsualOrigin && !UNUSUAL.test(below) ? inherited : `${inherited}\n${origin}${path}`;
  }

  /** Returns the decoded path that `reference` would have, whether there is such a file or not. */
  pathOf(base: Base, reference: string, position: PlaylistPosition): string {
    const encoded = this.#relativePath(this.#resolve(base, reference, position), reference, position);
    return decodePath(encoded) ?? encoded;
  }

  /** Returns a part as it is known by: a byte range that covers its whole file is that file. */
  partAt(path: string, stated: ByteRange | null): MediaPart {
    const range = stated === null ? null : this.rangeIn(path, stated);
    return { path, range: range?.offset === 0 && range.length === this.#sizes.get(path) ? null : range };
  }

  /**
   * Returns a byte range as it lies in its file. Some writers count its last byte one too far: servers end it with
   * the file (RFC 9110 §14.1.2), and of the boxes in it none can be missing. A range that goes further is left for
   * `checkRanges` to refuse.
   */
  rangeIn(path: string, range: ByteRange): ByteRange {
    if (range.offset + range.length - 1 !== this.#sizes.get(path) || range.length === 1) return range;
    this.#passed.add(path);
    return { ...range, length: range.length - 1 };
  }

  /** A warning for every file that ends one byte before a range of it. */
  get warnings(): Warning[] {
    return [...this.#passed].map((file) => warning('BYTE_RANGE_SHORTENED', { file }));
  }

  /** The first address of each playlist that can be read in two ways. */
  get ambiguous(): PlaylistFinding[] {
    for (const { named, position } of this.#noted.values()) {
      const served = this.#problemOf(named);
      // A file that playlists name, too, is no other one than was signed.
      if (served !== undefined) this.#found(served.problem, position, !this.#named.has(served.found));
    }
    return [...this.#ambiguous.values()];
  }

  #resolve(base: Base, reference: string, position: PlaylistPosition): URL {
    if (reference.length + base.url.href.length > MAX_ADDRESS_LENGTH) {
      throw new AppError('PLAYLIST_MALFORMED', {
        ...position,
        problem: `an address has more than ${MAX_ADDRESS_LENGTH} characters, with what it is relative to`,
      });
    }
    const url = URL.parse(reference, base.url.href);
    if (url === null)
      throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: 'an address is not well-formed' });
    const fromRoot = this.#fromRoot(reference);
    if (fromRoot === undefined) return url;
    // Whoever signs a folder knows where it is published.
    if (this.isComplete)
      this.#found('an address from the root of a server, where the folder need not be published', position);
    return fromRoot;
  }

  /**
   * Returns an address from the root of a server, `/video/1.m4s`, in a folder that has no address: it is right where
   * the folder is served as that root, and that is believed where the folder has what is before the last slash.
   */
  #fromRoot(reference: string): URL | undefined {
    if (this.#root.href !== FOLDER_URL || !/^\/(?!\/)/.test(reference)) return undefined;
    const url = new URL(`.${reference}`, this.#root);
    const directory = decodePath(new URL('.', url).href.slice(this.#root.href.length));
    if (directory === '') return url;
    return directory !== undefined && this.#servedNames.folders.has(directory.slice(0, -1)) ? url : undefined;
  }

  #relativePath(url: URL, reference: string, position: PlaylistPosition): string {
    const bare = new URL(url.href);
    bare.search = '';
    bare.hash = '';
    if (!bare.href.startsWith(this.#root.href)) {
      // The query may be a presigned URL's secret: it is never shown.
      throw new AppError('PLAYLIST_LEAVES_FOLDER', { ...position, reference: reference.replace(/\?.*$/s, '') });
    }
    return bare.href.slice(this.#root.href.length);
  }
}

/** Returns the path that a percent-encoded one stands for, or undefined where it stands for none. */
function decodePath(encoded: string): string | undefined {
  try {
    return encoded.split('/').map(decodeURIComponent).join('/');
  } catch {
    // Servers refuse a percent sign that encodes nothing, or send something else for it.
    return undefined;
  }
}
