/** Makes ISO BMFF files byte by byte for tests, independently of the code under test. */

export const C2PA_ID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');
export const XMP_ID = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex');

export function u16(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => number(value, 2)));
}

export function u32(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => number(value, 4)));
}

export function u64(...values: number[]): Buffer {
  return Buffer.concat(values.map((value) => number(value, 8)));
}

function number(value: number, widthBytes: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt.asIntN(64, BigInt(value)));
  return bytes.subarray(8 - widthBytes);
}

export function box(type: string, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([u32(content.length + 8), Buffer.from(type, 'latin1'), content]);
}

/** A box whose size is written in 64 bits. */
export function largeBox(type: string, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([u32(1), Buffer.from(type, 'latin1'), u64(content.length + 16), content]);
}

export function fullBox(type: string, versionAndFlags: number, ...contents: readonly Uint8Array[]): Buffer {
  return box(type, u32(versionAndFlags), ...contents);
}

export function c2paBox(purpose: string, content: Uint8Array, merkleOffset = u64(0)): Buffer {
  return box('uuid', C2PA_ID, u32(0), Buffer.from(`${purpose}\0`), merkleOffset, content);
}

export const FTYP = box('ftyp', Buffer.from('isom'), u32(0), Buffer.from('isommp42'));

export function ftyp(majorBrand: string): Buffer {
  return box('ftyp', Buffer.from(majorBrand), u32(0), Buffer.from(majorBrand));
}

export const SELF_CONTAINED = fullBox('url ', 1);

export interface TrackOptions {
  readonly handlerType?: string;
  readonly id?: number;
  /** Boxes inside the sample table, beside its descriptions. */
  readonly tables?: readonly Uint8Array[];
  readonly dataReferences?: readonly Uint8Array[];
  /** Sample entries as their format and the index of their data reference, counted from 1. */
  readonly entries?: readonly (readonly [format: string, dataReference: number, more?: Uint8Array])[];
  /** Boxes inside the track itself. */
  readonly more?: readonly Uint8Array[];
}

export function trak(options: TrackOptions = {}): Buffer {
  const { handlerType = 'soun', id = 1, tables = [], dataReferences = [SELF_CONTAINED], more = [] } = options;
  const { entries = [['mp4a', 1]] } = options;
  const stsd = fullBox(
    'stsd',
    0,
    u32(entries.length),
    ...entries.map(([format, reference, more = Buffer.alloc(0)]) =>
      box(format, Buffer.alloc(6), u16(reference), Buffer.alloc(20), more),
    ),
  );
  const dinf = box('dinf', fullBox('dref', 0, u32(dataReferences.length), ...dataReferences));
  const minf = box('minf', dinf, box('stbl', stsd, ...tables));
  const hdlr = fullBox('hdlr', 0, u32(0), Buffer.from(handlerType), Buffer.alloc(13));
  return box('trak', fullBox('tkhd', 0, u32(0, 0, id, 0, 0)), ...more, box('mdia', hdlr, minf));
}

export function stco(...offsets: readonly number[]): Buffer {
  return fullBox('stco', 0, u32(offsets.length), u32(...offsets));
}

export function co64(...offsets: readonly number[]): Buffer {
  return fullBox('co64', 0, u32(offsets.length), u64(...offsets));
}

/** `moov` with one sound track that has the given tables. */
export function moovWith(...tables: readonly Uint8Array[]): Buffer {
  return box('moov', trak({ tables }));
}

/**
 * A file made of parts that depend on where parts stand. Parts are made twice, at first with all offsets 0, so their
 * sizes must not depend on offsets.
 */
export function assemble(...parts: readonly (Uint8Array | ((offsets: readonly number[]) => Uint8Array))[]): Buffer {
  const make = (offsets: readonly number[]) => parts.map((part) => (typeof part === 'function' ? part(offsets) : part));
  const lengths = make(parts.map(() => 0)).map(({ length }) => length);
  const offsets = lengths.map((_, index) => lengths.slice(0, index).reduce((sum, length) => sum + length, 0));
  return Buffer.concat(make(offsets));
}

/** Finds the box at a path of types and returns its offset and its bytes. Throws where there is none. */
export function find(bytes: Buffer, ...path: readonly string[]): { offset: number; bytes: Buffer } {
  const [found] = findAll(bytes, ...path);
  if (found === undefined) throw new Error(`there is no ${path.join('/')}`);
  return found;
}

export function findAll(bytes: Buffer, ...path: readonly string[]): { offset: number; bytes: Buffer }[] {
  const [type, ...rest] = path;
  return boxesOf(bytes)
    .filter((child) => child.type === type)
    .flatMap(({ offset, headerSize, size }) => {
      const whole = { offset, bytes: bytes.subarray(offset, offset + size) };
      if (rest.length === 0) return [whole];
      const start = offset + headerSize + (type === 'meta' ? 4 : 0);
      const inside = findAll(bytes.subarray(start, offset + size), ...rest);
      return inside.map((child) => ({ ...child, offset: child.offset + start }));
    });
}

/** The boxes that a buffer consists of; throws where they do not fill it, up to 7 bytes. */
export function boxesOf(bytes: Buffer): { type: string; offset: number; headerSize: number; size: number }[] {
  const boxes: { type: string; offset: number; headerSize: number; size: number }[] = [];
  let offset = 0;
  while (offset + 8 <= bytes.length) {
    const short = bytes.readUInt32BE(offset);
    const size = short === 1 ? Number(bytes.readBigUInt64BE(offset + 8)) : short === 0 ? bytes.length - offset : short;
    if (size < 8 || offset + size > bytes.length) throw new Error(`a box of ${size} bytes at ${offset}`);
    boxes.push({
      type: bytes.toString('latin1', offset + 4, offset + 8),
      offset,
      headerSize: short === 1 ? 16 : 8,
      size,
    });
    offset += size;
  }
  return boxes;
}

/** The entries of an `stco` or `co64` box. */
export function chunkOffsetsIn(table: Buffer): number[] {
  const isWide = table.toString('latin1', 4, 8) === 'co64';
  return Array.from({ length: table.readUInt32BE(12) }, (_, index) =>
    isWide ? Number(table.readBigUInt64BE(16 + 8 * index)) : table.readUInt32BE(16 + 4 * index),
  );
}
