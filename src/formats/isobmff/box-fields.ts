import { AppError } from '#errors/app-error.ts';
import { type Box, shownType } from './box.ts';

/** Reads the fields of a box one after the other. Throws where the box ends before a field. */
export class BoxFields {
  readonly #box: Box;
  /** Where the next field starts, counted from the start of the box. */
  position: number;

  constructor(box: Box) {
    this.#box = box;
    this.position = box.header.headerSizeBytes;
  }

  /** Where the next field starts, counted from the start of the file. */
  get offset(): number {
    return this.#box.header.offset + this.position;
  }

  skip(lengthBytes: number): void {
    this.#require(lengthBytes);
    this.position += lengthBytes;
  }

  /** An unsigned integer; 8 bytes wide it is inexact past 2^53, which no offset or size of a file is. 0 bytes are 0. */
  uint(widthBytes: number): number {
    if (widthBytes > 4) return this.uint(widthBytes - 4) * 2 ** 32 + this.uint(4);
    const start = this.position;
    this.skip(widthBytes);
    return widthBytes === 0 ? 0 : this.#box.bytes.readUIntBE(start, widthBytes);
  }

  int32(): number {
    return this.uint(4) | 0;
  }

  /** The version and flags that every full box starts with (ISO/IEC 14496-12 §4.2.2). */
  versionAndFlags(): { readonly version: number; readonly flags: number } {
    return { version: this.uint(1), flags: this.uint(3) };
  }

  text(lengthBytes: number): string {
    const start = this.position;
    this.skip(lengthBytes);
    return this.#box.bytes.toString('latin1', start, this.position);
  }

  /** A view of the next bytes. */
  bytes(lengthBytes: number): Buffer {
    const start = this.position;
    this.skip(lengthBytes);
    return this.#box.bytes.subarray(start, this.position);
  }

  #require(lengthBytes: number): void {
    if (this.position + lengthBytes <= this.#box.bytes.length) return;
    const { fileName, header, bytes } = this.#box;
    throw new AppError('BMFF_BOX_MALFORMED', {
      name: fileName,
      boxType: shownType(header.type),
      offset: header.offset,
      problem: `its fields need ${lengthBytes} bytes at byte ${this.position} of the box, which has ${bytes.length}`,
    });
  }
}
