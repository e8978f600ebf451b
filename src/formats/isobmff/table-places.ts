import type { Box } from './boxes.ts';

// Players find tables of samples wherever these stand in a movie or a fragment, and each looks into other boxes for them. So no box
// that leads to samples may stand, or seem to stand, anywhere but at its one place.

/** Boxes that lead players to samples by their types, each with those in it. */
interface Places extends ReadonlyMap<string, Places> {}

const NONE: Places = new Map();
const tables = (...types: readonly string[]): Places => new Map(types.map((type) => [type, NONE]));
const within = (type: string, held: Places): Places => new Map([[type, held]]);

const STBL = tables('stsd', 'stts', 'ctts', 'stss', 'stsc', 'stsz', 'stz2', 'stco', 'co64', 'saiz', 'saio');
const TRAK = within('mdia', within('minf', within('stbl', STBL)));
const MOOV: Places = new Map([...within('trak', TRAK), ...within('mvex', tables('trex'))]);
const MOOF = within('traf', tables('tfhd', 'tfdt', 'trun', 'saiz', 'saio'));
/** The one place of every box that leads players to samples (ISO/IEC 14496-12 table 1). */
const PLACES: Places = new Map([...within('moov', MOOV), ...within('moof', MOOF)]);
const TYPES: ReadonlySet<string> = new Set(typesAmong(PLACES));
const TYPE_BYTES = [...TYPES].map((type) => Buffer.from(type, 'latin1'));
const TYPE_NUMBERS: ReadonlySet<number> = new Set(TYPE_BYTES.map((bytes) => bytes.readUInt32BE()));
/** Those of them in which players look for boxes: all others are tables. */
const CONTAINERS: ReadonlySet<string> = new Set('moov trak mdia minf stbl stsd mvex moof traf'.split(' '));

const HEADER_BYTES = 8;
/** Bytes of a table up to the end of its count at most: version and flags, and a size in that of sizes. */
const MAX_COUNT_END_BYTES = 12;
const WHITE_SPACE = [...Buffer.from('\t\n\r')];
const LARGE_HEADER_BYTES = 16;
/** Position of the first entry of a sample description behind its header (ISO/IEC 14496-12 §8.5.2). */
const ENTRIES_POSITION = 8;
/** Fields of a sample entry, behind which players look for boxes: 8 to 86 bytes, as its type and version say. */
const MAX_ENTRY_FIELDS_BYTES = 128;
/** Free space: recorders turn boxes into it that are no longer needed (`mvex` of Apple's), and no player looks into it. */
const FREE_TYPES = ['free', 'skip'];
/** The types of boxes in which players look for others. Random bytes are seldom one. */
const NAME = /^[\x20-\x7e\xa9]{4}$/;
/** Larger depths than players follow. */
const MAX_DEPTH = 16;

/** Tells whether a box of this type leads players to samples. */
export function isOfTables(type: string): boolean {
  return TYPES.has(type);
}

/** Types of boxes in a file in which players look for no boxes: they hold media, or nothing that a player knows. */
const UNSEARCHED_TYPES: ReadonlySet<string> = new Set(['', 'mdat', 'free', 'skip', 'wide', 'uuid', 'ftyp', 'mfra']);

/** Tells whether players may look for further boxes in a box of a file. */
export function isSearchedType(type: string): boolean {
  return !UNSEARCHED_TYPES.has(type);
}

/** Position and type of a box that leads players to samples where it has no place. The position counts from the start of the file. */
export interface StrayTable {
  readonly type: string;
  readonly offset: number;
}

/**
 * Returns the first box that leads to samples and stands, or seems to stand, elsewhere than at its place: at any byte of a box,
 * behind a size that fits into it, and where a player that cuts boxes which are too long arrives by the sizes before it. Null for
 * none. `box` is a `moov` or `moof` box, or any other that stands in a file beside the media. Random bytes, such as those of covers,
 * look like one by chance: of N bytes in a box of S, N·S·22/2^64, which is one cover of 1 MiB in 750,000, and one of 100 kB in 80
 * million.
 */
export function strayTableIn(box: Box): StrayTable | null {
  const placed = new PlacedBoxes(box);
  const at = placed.findSized() ?? (placed.isPlain ? null : placed.findReached());
  if (at === null) return null;
  return { type: box.bytes.toString('latin1', at + 4, at + HEADER_BYTES), offset: box.header.offset + at };
}

/** A box, and the boxes in it that stand at their places. Positions count from its start. */
class PlacedBoxes {
  readonly #bytes: Buffer;
  readonly #first: number;
  readonly #placed = new Set<number>();
  /** Ranges outside of tables at their places and of free space beside them, in order. */
  readonly #ranges: { readonly start: number; readonly end: number }[] = [];
  /** The end of the last of these tables and of this free space. */
  #rangeStart: number;
  /** Positions at which a box was found. */
  readonly #visited = new Set<number>();
  #isPlain = true;

  constructor({ type, bytes, header }: Box) {
    this.#bytes = bytes;
    this.#first = header.headerSizeBytes;
    this.#rangeStart = this.#first;
    const places = PLACES.get(type);
    if (places === undefined) this.#isPlain = false;
    else this.#place(this.#first, bytes.length, places);
    this.#leaveOut(bytes.length, bytes.length);
  }

  /** True where there are no boxes but those at their places, free space, and `mfhd`: by sizes, players arrive at no others. */
  get isPlain(): boolean {
    return this.#isPlain;
  }

  /** Notes the boxes at their places, and leaves out the tables among them and the free space beside them. */
  #place(start: number, end: number, places: Places): void {
    let arrivedAt = start;
    for (const { at, type, contentAt, next } of this.#chain(start, end)) {
      arrivedAt = next;
      const held = places.get(type);
      if (held === undefined) {
        const isFree = FREE_TYPES.includes(type);
        if (isFree) this.#leaveOut(contentAt, next);
        this.#isPlain &&= isFree || (type === 'mfhd' && places === MOOF);
        continue;
      }
      this.#isPlain &&= at + this.#bytes.readUInt32BE(at) === next && type !== 'stsd';
      this.#placed.add(at);
      if (!CONTAINERS.has(type)) this.#leaveOut(contentAt, next);
      else if (type !== 'stsd') this.#place(contentAt, next, held);
    }
    this.#isPlain &&= arrivedAt === end;
  }

  #leaveOut(start: number, end: number): void {
    this.#ranges.push({ start: this.#rangeStart, end: start });
    this.#rangeStart = end;
  }

  /** Finds a type at any byte of these ranges, behind a size that fits. */
  findSized(): number | null {
    for (const { start, end } of this.#ranges) {
      for (const typeAt of typesIn(this.#bytes, start + 4, end)) {
        const at = typeAt - 4;
        if (!this.#placed.has(at) && this.#fits(at) && !this.#isText(at, this.#bytes.length)) return at;
      }
    }
    return null;
  }

  #fits(at: number): boolean {
    const leftBytes = this.#bytes.length - at;
    const sizeBytes = this.#bytes.readUInt32BE(at);
    if (sizeBytes !== 1) return sizeBytes >= HEADER_BYTES && sizeBytes <= leftBytes;
    return leftBytes >= LARGE_HEADER_BYTES && this.#bytes.readBigUInt64BE(at + HEADER_BYTES) <= leftBytes;
  }

  /** Tells whether text follows a type, as in "traffic": no table has as many entries as that would count. */
  #isText(at: number, end: number): boolean {
    const content = this.#bytes.subarray(at + HEADER_BYTES, Math.min(at + HEADER_BYTES + MAX_COUNT_END_BYTES, end));
    const isTerminated = content.at(-1) === 0 && at + HEADER_BYTES + content.length === end;
    const text = isTerminated ? content.subarray(0, -1) : content;
    return content.length > 0 && text.every((byte) => byte >= 0x20 || WHITE_SPACE.includes(byte));
  }

  /** Finds a type where players arrive that take a box which is too long for one that ends with the box around it. */
  findReached(): number | null {
    return this.#reached(this.#first, this.#bytes.length, '', 0);
  }

  #reached(start: number, end: number, parentType: string, depth: number): number | null {
    for (const { at, type, contentAt, next } of this.#chain(start, end)) {
      if (this.#visited.has(at)) return null;
      this.#visited.add(at);
      const isPlaced = this.#placed.has(at);
      if (TYPES.has(type) && !isPlaced && !this.#isText(at, end)) return at;
      if (FREE_TYPES.includes(type)) continue;
      if (depth === MAX_DEPTH || !NAME.test(type) || (isPlaced && !CONTAINERS.has(type))) continue;
      for (const first of this.#firstChildren(type, parentType, contentAt, next)) {
        const found = this.#reached(first, next, type, depth + 1);
        if (found !== null) return found;
      }
    }
    return null;
  }

  /** Yields positions at which players may look for the first box in another one. */
  *#firstChildren(type: string, parentType: string, contentAt: number, end: number): Generator<number> {
    yield contentAt;
    if (type === 'stsd') yield contentAt + ENTRIES_POSITION;
    // Players look for the first box of metadata by its type.
    const handlerAt = type === 'meta' ? this.#bytes.subarray(0, end).indexOf('hdlr', contentAt, 'latin1') : -1;
    if (handlerAt !== -1) yield handlerAt - 4;
    if (parentType !== 'stsd') return;
    const last = Math.min(contentAt + MAX_ENTRY_FIELDS_BYTES, end - HEADER_BYTES);
    for (let at = contentAt + 1; at <= last; at += 1) yield at;
  }

  /** Yields the boxes one behind the other, as players do that cut the last one. */
  *#chain(start: number, end: number) {
    for (let at = start; at + HEADER_BYTES <= end; ) {
      const size = this.#bytes.readUInt32BE(at);
      const isLarge = size === 1 && at + LARGE_HEADER_BYTES <= end;
      const sizeBytes = isLarge ? Number(this.#bytes.readBigUInt64BE(at + HEADER_BYTES)) : size;
      const contentAt = at + (isLarge ? LARGE_HEADER_BYTES : HEADER_BYTES);
      const next = sizeBytes === 0 || sizeBytes > end - at ? end : at + sizeBytes;
      if (next < contentAt) return;
      yield { at, type: this.#bytes.toString('latin1', at + 4, at + HEADER_BYTES), contentAt, next };
      at = next;
    }
  }
}

function* typesAmong(places: Places): Generator<string> {
  for (const [type, held] of places) {
    yield type;
    yield* typesAmong(held);
  }
}

/** Ranges up to this size are searched for all types at once, larger ones for each by the faster search of the engine. */
const MAX_SMALL_BYTES = 4096;

/** Yields the positions of types in a range. */
function* typesIn(bytes: Buffer, start: number, end: number): Generator<number> {
  if (end - start > MAX_SMALL_BYTES) {
    const range = bytes.subarray(0, end);
    for (const type of TYPE_BYTES) {
      for (let at = range.indexOf(type, start); at !== -1; at = range.indexOf(type, at + 1)) yield at;
    }
    return;
  }
  let word = 0;
  for (let at = start; at < end; at += 1) {
    word = ((word << 8) | (bytes[at] as number)) >>> 0;
    if (at - start >= 3 && TYPE_NUMBERS.has(word)) yield at - 3;
  }
}
