import { AppError } from '#errors/app-error.ts';
import { decodedSegment } from '../input-name.ts';

/** An entry of a directory as a server lists it. */
export interface IndexEntry {
  /** One decoded path segment, not yet known to be safe. */
  readonly name: string;
  readonly isFolder: boolean;
  readonly url: URL;
  /** Null where the server does not tell it to the byte. */
  readonly sizeBytes: number | null;
}

/** The titles of directory listings of nginx, Apache, lighttpd and Python's server. */
const INDEX_TITLE = /<title>\s*(?:index of|directory listing (?:for|of))\b/i;

/** The beginning of an HTML page. One with a zero in it is media, which holds whatever it likes beside. */
const HTML_TEXT = /^\uFEFF?\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|title)\b[^\0]*$/i;

/** Titles stand near the beginning of a page. */
const TITLE_WITHIN_LENGTH = 8 * 1024;

/** The entity references that servers put into addresses. */
const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }),
);

/**
 * Returns the entries of a directory, from the page that a server lists it with: nginx (HTML or JSON), Apache, Caddy
 * (JSON), and those that look alike. `url` is where the page came from; null where it is no such page. Entries that lie
 * elsewhere are passed over.
 */
export function readDirectoryIndex(text: string, mediaType: string | undefined, url: URL): IndexEntry[] | null {
  const folder = new URL(url.pathname.endsWith('/') ? url.pathname : `${url.pathname}/`, url.origin);
  if (mediaType === 'application/json') return readJson(text, folder);
  return HTML_TEXT.test(text) && INDEX_TITLE.test(text.slice(0, TITLE_WITHIN_LENGTH)) ? readHtml(text, folder) : null;
}

function readJson(text: string, folder: URL): IndexEntry[] | null {
  const listed = parseJson(text);
  if (!Array.isArray(listed)) return null;
  const entries: IndexEntry[] = [];
  for (const item of listed as unknown[]) {
    if (!isNamed(item)) return null;
    const kind = kindOf(item);
    if (kind === null) continue;
    const isFolder = kind === 'folder';
    // Caddy writes a slash behind the names of folders.
    const name = isFolder ? item.name.replace(/\/$/, '') : item.name;
    const { size } = item;
    const sizeBytes = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : null;
    const url = new URL(encodeURIComponent(name) + (isFolder ? '/' : ''), folder);
    entries.push({ name, isFolder, url, sizeBytes });
  }
  return entries;
}

/** Returns the kind of an entry, from `type` (nginx) or `is_dir` (Caddy); null for neither file nor folder. */
function kindOf({ type, is_dir: isFolder }: ListedItem): 'file' | 'folder' | null {
  if (type === 'file' || isFolder === false) return 'file';
  return type === 'directory' || isFolder === true ? 'folder' : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // No JSON after all, so no listing.
    return null;
  }
}

/** An entry of a directory in JSON; nobody has checked what it holds. */
interface ListedItem {
  readonly name: string;
  readonly type?: unknown;
  readonly is_dir?: unknown;
  readonly size?: unknown;
}

function isNamed(item: unknown): item is ListedItem {
  return typeof item === 'object' && item !== null && 'name' in item && typeof item.name === 'string';
}

function readHtml(text: string, folder: URL): IndexEntry[] {
  const entries = new Map<string, IndexEntry>();
  const links = [...linksIn(text)];
  for (const [index, { reference, end }] of links.entries()) {
    const behind = text.slice(end, links[index + 1]?.start ?? end + 2048);
    const entry = readLink(decodeEntities(reference), behind, folder);
    // An icon may be a link of its own before the name that the size stands behind.
    if (entry !== null && (entries.get(entry.url.href)?.sizeBytes ?? null) === null) entries.set(entry.url.href, entry);
  }
  return [...entries.values()];
}

/** An `a` element with an address; its tag is `[start, end)` of the page's characters. */
interface PlacedLink {
  readonly reference: string;
  readonly start: number;
  readonly end: number;
}

/** An attribute of a tag, behind whatever separates it from the one before. */
const ATTRIBUTE = /[\s/"'=]*([^\s/"'=<>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'))?/y;
const TAG_END = /[\s/"'=]*>/y;

/**
 * Finds the tags of links and their first address, from the left to the right and every character once: a regular
 * expression for whole tags starts again at every address of a tag that does not end.
 */
function* linksIn(text: string): Generator<PlacedLink> {
  const opening = /<a(?=\s)/gi;
  for (let tag = opening.exec(text); tag !== null; tag = opening.exec(text)) {
    let at = tag.index + tag[0].length;
    let reference: string | undefined;
    for (;;) {
      ATTRIBUTE.lastIndex = at;
      const attribute = ATTRIBUTE.exec(text);
      if (attribute === null) break;
      at += attribute[0].length;
      if (attribute[1]?.toLowerCase() === 'href') reference ??= attribute[2] ?? attribute[3];
    }
    TAG_END.lastIndex = at;
    if (TAG_END.test(text)) at = TAG_END.lastIndex;
    else reference = undefined;
    if (reference !== undefined) yield { reference, start: tag.index, end: at };
    opening.lastIndex = at;
  }
}

/** Reads a link to something right inside the folder; null for the link to the folder above and those that sort. */
function readLink(reference: string, behind: string, folder: URL): IndexEntry | null {
  const url = URL.parse(reference, folder.href);
  // An empty query shows in the address alone.
  if (url === null || /[?#]/.test(url.href) || !url.href.startsWith(folder.href)) return null;
  const rest = url.href.slice(folder.href.length);
  const isFolder = rest.endsWith('/');
  const segment = isFolder ? rest.slice(0, -1) : rest;
  if (segment === '' || segment.includes('/')) return null;
  return { name: decodedSegment(segment), isFolder, url, sizeBytes: isFolder ? null : exactSize(behind) };
}

/** Returns the size behind a link and a date, where it is a plain number at the end: rounded ones carry a unit. */
function exactSize(behind: string): number | null {
  const plain = behind.replace(/<[^<>]*>|&nbsp;/g, ' ').slice(0, 1024);
  const [, size] = /\d{2}:\d{2}(?::\d{2})?\s+(\d{1,15})\s*$/.exec(plain) ?? [];
  return size === undefined ? null : Number(size);
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w{2,4}));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name.toLowerCase()) ?? whole;
    const point = decimal !== undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}

/** Refuses a name that would lead out of its folder, or that no file system takes. Throws `FOLDER_ENTRY_REFUSED`. */
export function checkSegment(folder: string, name: string): void {
  const problem = segmentProblem(name);
  if (problem !== null)
    throw new AppError('FOLDER_ENTRY_REFUSED', { path: folder, entry: name.slice(0, 255), problem });
}

function segmentProblem(name: string): string | null {
  if (name === '' || name === '.' || name === '..') return 'is no name of a file';
  if (/[/\\]/.test(name)) return 'leads out of its folder';
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) return 'has characters that names of files do not have';
  return Buffer.byteLength(name) > 255 ? 'has a name of more than 255 bytes' : null;
}
