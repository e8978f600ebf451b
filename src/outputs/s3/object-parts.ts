import assert from 'node:assert/strict';
import { partitionPoint } from '#bytes/partition-point.ts';
import type { CopyRun } from '#bytes/splice-plan.ts';

const MIB = 1024 * 1024;

// The bounds of S3: parts of 5 MiB to 5 GiB, the last of any size; 10,000 of them; objects of up to 5 TiB.
const MIN_PART_BYTES = 5 * MIB;
const MAX_PARTS = 10_000;
export const MAX_OBJECT_BYTES = 5 * 1024 * 1024 * MIB;

/** The size of parts of objects up to 80 GB; larger objects have larger parts. Parts are in memory until they are sent. */
const DEFAULT_PART_BYTES = 8 * MIB;

/** Parts that the server copies pass through nobody's memory. */
const DEFAULT_COPIED_PART_BYTES = 64 * MIB;

/** The first copied part is awaited: it shows that the server supports copies. */
const FIRST_COPIED_PART_BYTES = 8 * MIB;

/** Limits of an object with copied ranges: parts that are written, parts that are copied, and ranges. */
const MAX_WRITTEN_PARTS = 4_000;
const MAX_COPIED_PARTS = 2_000;
const MAX_COPIED_RANGES = 1_000;

/** Limits the ranges that the server copies from below: their neighbours take from them what they lack of a part. */
const MIN_COPY_BYTES = 4 * MIN_PART_BYTES;

/** A part of an object. All in bytes. */
export interface ObjectPart {
  /** Counts from 1. */
  readonly number: number;
  /** Position in the object. */
  readonly position: number;
  readonly length: number;
  /** Position in the object that the server copies it from; absent for a written part. */
  readonly copiedFrom?: number;
}

/** The division of an object into parts. */
export interface PartLayout {
  /** False while the object's size is unknown, so that its last part may stay short. */
  readonly isKnown: boolean;
  /** True where the object is one part: it needs no multipart upload then. */
  readonly isSingle: boolean;
  partAt(position: number): ObjectPart;
  /** The parts that the server copies. */
  readonly copied: readonly ObjectPart[];
}

/** Cuts an object of known size into parts; of the runs, what is long enough becomes parts that the server copies. */
export function planParts(sizeBytes: number, runs: readonly CopyRun[]): PartLayout {
  const parts: ObjectPart[] = [];
  const segments = segmentsOf(sizeBytes, runs);
  const sizes = partSizesOf(sizeBytes, segments);
  for (const segment of segments) {
    const shortestRest = segment === segments.at(-1) ? 1 : MIN_PART_BYTES;
    for (const [start, length] of cut(segment.length, sizes(segment, parts.some(isCopied)), shortestRest)) {
      const from = segment.copiedFrom === undefined ? {} : { copiedFrom: segment.copiedFrom + start };
      parts.push({ number: parts.length + 1, position: segment.position + start, length, ...from });
    }
  }
  assert(parts.length <= MAX_PARTS, `${parts.length} parts are too many`);
  return new ListedParts(parts);
}

/**
 * Cuts an object whose size is known only at its end: the first thousand parts have the smallest size, the next thousand
 * twice that, and so on, to 5 TB. The last part ends where the object does.
 */
export function growingParts(): PartLayout {
  return { isKnown: false, isSingle: false, copied: [], partAt: growingPartAt };
}

const GROWING_STEP_PARTS = 1_000;

function growingPartAt(position: number): ObjectPart {
  let stepPosition = 0;
  let length = MIN_PART_BYTES;
  for (let stepNumber = 1; ; stepNumber += GROWING_STEP_PARTS) {
    const stepBytes = length * GROWING_STEP_PARTS;
    if (position < stepPosition + stepBytes) {
      const index = Math.floor((position - stepPosition) / length);
      return { number: stepNumber + index, position: stepPosition + index * length, length };
    }
    stepPosition += stepBytes;
    length *= 2;
  }
}

class ListedParts implements PartLayout {
  readonly isKnown = true;
  readonly isSingle: boolean;
  readonly copied: readonly ObjectPart[];
  readonly #parts: readonly ObjectPart[];

  constructor(parts: readonly ObjectPart[]) {
    this.#parts = parts;
    this.copied = parts.filter(isCopied);
    this.isSingle = parts.length <= 1 && this.copied.length === 0;
  }

  partAt(position: number): ObjectPart {
    const part = this.#parts[partitionPoint(this.#parts, (each) => each.position > position) - 1];
    assert(part !== undefined && position < part.position + part.length, `byte ${position} lies in the object`);
    return part;
  }
}

function isCopied({ copiedFrom }: ObjectPart): boolean {
  return copiedFrom !== undefined;
}

type Segment = Omit<ObjectPart, 'number'>;

/**
 * Returns the object as ranges that are written and ranges that are copied, each at least as long as a part has to be.
 */
function segmentsOf(sizeBytes: number, runs: readonly CopyRun[]): Segment[] {
  const shortest = Math.max(MIN_COPY_BYTES, Math.ceil(sizeBytes / MAX_COPIED_RANGES));
  const segments: Segment[] = [];
  let position = 0;
  for (const run of runs) {
    if (run.length < shortest) continue;
    const writtenBytes = run.position - position;
    const ceded = writtenBytes === 0 ? 0 : Math.max(MIN_PART_BYTES - writtenBytes, 0);
    const start = run.position + ceded;
    if (start > position) segments.push({ position, length: start - position });
    position = run.position + run.length;
    segments.push({ position: start, length: position - start, copiedFrom: run.offset + ceded });
  }
  if (position < sizeBytes) segments.push({ position, length: sizeBytes - position });
  return segments;
}

/** Returns the size of a segment's parts; the object's first copied part is smaller. */
function partSizesOf(
  sizeBytes: number,
  segments: readonly Segment[],
): (segment: Segment, copiesBefore: boolean) => readonly [first: number, others: number] {
  const copiedBytes = segments.reduce((sum, part) => sum + (part.copiedFrom === undefined ? 0 : part.length), 0);
  const maxWritten = copiedBytes === 0 ? MAX_PARTS : MAX_WRITTEN_PARTS;
  const written = wholeMib(Math.max(DEFAULT_PART_BYTES, (sizeBytes - copiedBytes) / maxWritten));
  const copied = wholeMib(Math.max(DEFAULT_COPIED_PART_BYTES, copiedBytes / MAX_COPIED_PARTS));
  return ({ copiedFrom }, copiesBefore) => {
    if (copiedFrom === undefined) return [written, written];
    return [copiesBefore ? copied : FIRST_COPIED_PART_BYTES, copied];
  };
}

function wholeMib(bytes: number): number {
  return Math.ceil(bytes / MIB) * MIB;
}

/** Cuts a length into pieces: start and length of each. A rest that is too short joins the piece before it. */
function* cut(
  total: number,
  [first, others]: readonly [number, number],
  shortestRest: number,
): Generator<readonly [number, number]> {
  let size = first;
  for (let start = 0; start < total; ) {
    const left = total - start;
    const length = left - size < shortestRest ? left : size;
    yield [start, length];
    start += length;
    size = others;
  }
}
