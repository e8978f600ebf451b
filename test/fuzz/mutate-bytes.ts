import type { SeededRandom } from '../support/seeded-random.ts';

/** Values at which sizes, counts and offsets go wrong. */
const EDGES = [0, 1, 2, 7, 8, 15, 16, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff];
/** Heads of CBOR (RFC 8949 §3) that promise much: text, bytes, lists, maps and tags of 32 or 64 bits. */
const CBOR_HEADS = [
  '5a7fffffff',
  '5bffffffffffffffff',
  '7affffffff',
  '9b7fffffffffffffff',
  '9affffffff',
  'bbffffffffffffffff',
  'c249',
  '9f',
  'bf',
  'f97e00',
];
/** Elements of Matroska whose sizes, or whose absence, matter. */
const EBML_IDS = [
  '1a45dfa3',
  '18538067',
  '1f43b675',
  '1654ae6b',
  '1c53bb6b',
  '114d9b74',
  '1549a966',
  'ae',
  'a3',
  'a0',
  'a1',
  'bb',
  '4dbb',
  '1254c367',
  'ec',
];
/** An input does not grow past this, in bytes: time limits are for inputs of this size. */
export const MAX_INPUT_BYTES = 512 * 1024;

type ByteMutation = (bytes: Buffer, random: SeededRandom, other: Buffer) => Buffer;

const MUTATIONS: readonly (readonly [weight: number, mutation: ByteMutation])[] = [
  [3, flipBits],
  [6, writeEdge],
  [6, writeNearType],
  [2, removeRange],
  [2, zeroRange],
  [2, repeatRange],
  [1, cutOff],
  [1, splice],
  [2, moveBox],
  [1, insertCbor],
  [1, insertElement],
  [1, nestBoxes],
];
const CHOICES = MUTATIONS.flatMap(([weight, mutation]) => new Array<ByteMutation>(weight).fill(mutation));

/** Changes a file of boxes, chunks, elements or frames in one to six places. */
export function mutateBytes(seed: Buffer, random: SeededRandom, other: Buffer): Buffer {
  let bytes: Buffer = Buffer.from(seed);
  const changes = 1 + Math.floor(random.next() ** 2 * 6);
  for (let change = 0; change < changes; change += 1) {
    if (bytes.length === 0) return bytes;
    bytes = random.pick(CHOICES)(bytes, random, other);
  }
  return bytes.subarray(0, MAX_INPUT_BYTES);
}

/** Headers and tables lie at the start of files, so most places are chosen there. */
function placeIn(bytes: Buffer, random: SeededRandom): number {
  const range = random.chance(0.7) ? Math.min(bytes.length, 4096) : bytes.length;
  return Math.floor(random.next() * range);
}

function flipBits(bytes: Buffer, random: SeededRandom): Buffer {
  const at = placeIn(bytes, random);
  bytes[at] = (bytes[at] as number) ^ (1 << random.between(0, 7));
  return bytes;
}

function writeEdge(bytes: Buffer, random: SeededRandom): Buffer {
  return writeNumber(bytes, placeIn(bytes, random), random);
}

function writeNumber(bytes: Buffer, at: number, random: SeededRandom): Buffer {
  const width = random.pick([1, 2, 3, 4, 4, 4, 8]);
  if (at < 0 || at + width > bytes.length) return bytes;
  const edge = random.chance(0.2) ? bytes.length + random.between(-16, 16) : random.pick(EDGES);
  const value = BigInt(edge) * (width === 8 && random.chance(0.3) ? 0x1_0000_0001n : 1n);
  for (let index = 0; index < width; index += 1) {
    const shift = 8n * BigInt(random.chance(0.85) ? width - 1 - index : index);
    bytes[at + index] = Number((value >> shift) & 0xffn);
  }
  return bytes;
}

const typesOf = new WeakMap<Buffer, readonly number[]>();

/** Returns the offsets of four letters behind what may be a size: types of boxes, chunks and tags. */
function typePlaces(bytes: Buffer): readonly number[] {
  const known = typesOf.get(bytes);
  if (known !== undefined) return known;
  const places: number[] = [];
  const isLetter = (byte: number): boolean =>
    (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x41 && byte <= 0x5a) || byte === 0x20 || (byte >= 0x30 && byte <= 0x39);
  for (let at = 0, letters = 0; at < bytes.length && places.length < 500; at += 1) {
    letters = isLetter(bytes[at] as number) ? letters + 1 : 0;
    if (letters >= 4) places.push(at - 3);
  }
  typesOf.set(bytes, places);
  return places;
}

/** Changes the size before a type, or one of the fields behind it: version, flags, counts. */
function writeNearType(bytes: Buffer, random: SeededRandom): Buffer {
  const places = typePlaces(bytes);
  if (places.length === 0) return writeEdge(bytes, random);
  const type = random.pick(places);
  return writeNumber(bytes, type + random.pick([-4, -4, 4, 6, 8, 8, 12, 12, 16, 20, 24]), random);
}

function rangeIn(bytes: Buffer, random: SeededRandom): [number, number] {
  const start = placeIn(bytes, random);
  const length = random.chance(0.8) ? random.between(1, 64) : random.between(1, bytes.length);
  return [start, Math.min(start + length, bytes.length)];
}

function removeRange(bytes: Buffer, random: SeededRandom): Buffer {
  const [start, end] = rangeIn(bytes, random);
  return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
}

function zeroRange(bytes: Buffer, random: SeededRandom): Buffer {
  const [start, end] = rangeIn(bytes, random);
  return bytes.fill(0, start, end);
}

/** Mostly twice; now and then so often that what is not linear shows. */
function repeatRange(bytes: Buffer, random: SeededRandom): Buffer {
  const [start, end] = rangeIn(bytes, random);
  const most = Math.floor(MAX_INPUT_BYTES / (end - start));
  const times = random.chance(0.03) ? most : random.between(1, Math.min(8, most));
  const repeated = new Array<Buffer>(times).fill(bytes.subarray(start, end));
  return Buffer.concat([bytes.subarray(0, end), ...repeated, bytes.subarray(end)]).subarray(0, MAX_INPUT_BYTES);
}

function cutOff(bytes: Buffer, random: SeededRandom): Buffer {
  return bytes.subarray(0, random.between(0, bytes.length));
}

function splice(bytes: Buffer, random: SeededRandom, other: Buffer): Buffer {
  const [start, end] = rangeIn(other.length === 0 ? bytes : other, random);
  const at = placeIn(bytes, random);
  const piece = (other.length === 0 ? bytes : other).subarray(start, end);
  return Buffer.concat([
    bytes.subarray(0, at),
    piece,
    bytes.subarray(random.chance(0.5) ? at : Math.min(at + piece.length, bytes.length)),
  ]);
}

/** The box around a type that was found, as far as its size says; null where it says nothing. */
function boxAt(bytes: Buffer, type: number): [number, number] | null {
  if (type < 4) return null;
  const size = bytes.readUInt32BE(type - 4);
  return size >= 8 && type - 4 + size <= bytes.length ? [type - 4, type - 4 + size] : null;
}

/** Copies a whole box to where another one stands: into a box that does not hold such ones, or into itself. */
function moveBox(bytes: Buffer, random: SeededRandom): Buffer {
  const places = typePlaces(bytes);
  const box = places.length === 0 ? null : boxAt(bytes, random.pick(places));
  if (box === null) return bytes;
  const at = Math.max(random.pick(places) - 4, 0);
  const copy = Buffer.from(bytes.subarray(...box));
  if (random.chance(0.5)) return Buffer.concat([bytes.subarray(0, at), copy, bytes.subarray(at)]);
  copy.copy(bytes, at);
  return bytes;
}

function nestBoxes(bytes: Buffer, random: SeededRandom): Buffer {
  const places = typePlaces(bytes);
  if (places.length === 0) return bytes;
  const type = bytes.subarray(random.pick(places)).subarray(0, 4);
  const depth = random.chance(0.05) ? 20_000 : random.between(2, 40);
  const nested = Buffer.alloc(depth * 8);
  for (let level = 0; level < depth; level += 1) {
    nested.writeUInt32BE((depth - level) * 8, level * 8);
    type.copy(nested, level * 8 + 4);
  }
  const at = Math.max(random.pick(places) - 4, 0);
  return Buffer.concat([bytes.subarray(0, at), nested, bytes.subarray(at)]);
}

function insertCbor(bytes: Buffer, random: SeededRandom): Buffer {
  const head = Buffer.from(random.pick(CBOR_HEADS), 'hex');
  const times = random.chance(0.05) ? 10_000 : 1;
  const at = Math.floor(random.next() * bytes.length);
  return Buffer.concat([
    bytes.subarray(0, at),
    ...new Array<Buffer>(times).fill(head),
    bytes.subarray(at + (random.chance(0.5) ? head.length : 0)),
  ]);
}

/** Puts in an element of Matroska with any size, also an unknown one. */
function insertElement(bytes: Buffer, random: SeededRandom): Buffer {
  const size = random.pick(['80', 'ff', '81', '88', '01ffffffffffffff', '4000', '0100000000000000', '1fffffff']);
  const element = Buffer.from(random.pick(EBML_IDS) + size, 'hex');
  const at = placeIn(bytes, random);
  if (random.chance(0.5)) {
    element.copy(bytes, at);
    return bytes;
  }
  return Buffer.concat([bytes.subarray(0, at), element, bytes.subarray(at)]);
}
