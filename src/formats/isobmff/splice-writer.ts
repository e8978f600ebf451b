import { type HashedInto, outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { isExcludedType, MDAT_HEAD_SIZE_BYTES, offsetMark } from './bmff-hash.ts';
import { BOX_HEADER_SIZE_BYTES, LONGEST_BOX_HEADER_BYTES } from './box.ts';
import type { FileBox } from './file-boxes.ts';
import type { Replacement } from './stored-offsets.ts';

/** Blank boxes are filled from here piece by piece, so that a large one takes no memory. */
const ZEROS = Buffer.alloc(1024 * 1024);
const LARGEST_COMPACT_SIZE_BYTES = 0xffff_ffff;

/** Writes the boxes of a file one after the other as splices, with their offset marks and changed bytes. */
export class SpliceWriter {
  readonly splices: Splice[] = [];
  readonly #replacements: readonly Replacement[];
  #nextReplacement = 0;
  #position = 0;

  /** `replacements` are in ascending order, and lie in boxes that will be written. */
  constructor(replacements: readonly Replacement[]) {
    this.#replacements = replacements;
  }

  add(...splices: readonly Splice[]): void {
    for (const splice of splices) {
      this.splices.push(splice);
      this.#position += outputLengthOf(splice);
    }
  }

  /** A box of the source. Boxes come in the order of the source. */
  writeBox(box: FileBox): void {
    const into = isExcludedType(box.type) ? 'none' : 'flat';
    if (into === 'flat') this.#mark();
    this.copy(box.offset, box.offset + box.sizeBytes, into);
  }

  /** A box whose content goes into the leaves of a Merkle tree. */
  writeMerkleBox({ offset, sizeBytes }: FileBox): void {
    this.#mark();
    this.copy(offset, offset + MDAT_HEAD_SIZE_BYTES, 'flat');
    this.copy(offset + MDAT_HEAD_SIZE_BYTES, offset + sizeBytes, 'leaves');
  }

  /** A `free` box of zeros. */
  writeBlankBox(sizeBytes: number): void {
    const header = freeBoxHeader(sizeBytes);
    this.#mark();
    this.add({ kind: 'insert', bytes: header, into: 'flat' });
    for (let remaining = sizeBytes - header.length; remaining > 0; remaining -= ZEROS.length) {
      this.add({ kind: 'insert', bytes: ZEROS.subarray(0, remaining), into: 'flat' });
    }
  }

  /** Bytes of the source that are no box, put into a `free` box. */
  writeWrapped(offset: number, length: number): void {
    this.#mark();
    this.add({ kind: 'insert', bytes: freeBoxHeader(BOX_HEADER_SIZE_BYTES + length), into: 'flat' });
    this.copy(offset, offset + length, 'flat');
  }

  /** Bytes of the source, with replacements where there are any. */
  copy(start: number, end: number, into: HashedInto): void {
    let at = start;
    for (;;) {
      const replacement = this.#replacements[this.#nextReplacement];
      if (replacement === undefined || replacement.offset >= end) break;
      this.#copyUnchanged(at, replacement.offset, into);
      this.add({ kind: 'insert', bytes: replacement.bytes, into });
      at = replacement.offset + replacement.length;
      this.#nextReplacement += 1;
    }
    this.#copyUnchanged(at, end, into);
  }

  #copyUnchanged(start: number, end: number, into: HashedInto): void {
    if (end > start) this.add({ kind: 'copy', offset: start, length: end - start, into });
  }

  #mark(): void {
    this.add({ kind: 'mark', bytes: offsetMark(this.#position) });
  }
}

function freeBoxHeader(sizeBytes: number): Buffer {
  const isLarge = sizeBytes > LARGEST_COMPACT_SIZE_BYTES;
  const header = Buffer.alloc(isLarge ? LONGEST_BOX_HEADER_BYTES : BOX_HEADER_SIZE_BYTES);
  header.writeUInt32BE(isLarge ? 1 : sizeBytes, 0);
  header.write('free', 4, 'latin1');
  if (isLarge) header.writeBigUInt64BE(BigInt(sizeBytes), BOX_HEADER_SIZE_BYTES);
  return header;
}
