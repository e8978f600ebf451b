/** A change that makes what follows it move. Offsets count from the start of the source, sizes are in bytes. */
export interface Edit {
  readonly offset: number;
  /** How many bytes from `offset` on are left out. */
  readonly removedBytes: number;
  /** How many new bytes stand in their place. */
  readonly insertedBytes: number;
}

/** Where bytes of the source stand in the output, given all edits. */
export class OffsetShift {
  readonly #sizeBytes: number;
  /** Edits in ascending order, each with how far what follows it has moved. */
  readonly #steps: { readonly start: number; readonly keptFrom: number; readonly delta: number }[] = [];

  /** `edits` may come in any order, but those that remove bytes do not overlap others. */
  constructor(edits: readonly Edit[], sourceSizeBytes: number) {
    this.#sizeBytes = sourceSizeBytes;
    let delta = 0;
    for (const edit of edits.toSorted((a, b) => a.offset - b.offset)) {
      delta += edit.insertedBytes - edit.removedBytes;
      this.#steps.push({ start: edit.offset, keptFrom: edit.offset + edit.removedBytes, delta });
    }
  }

  /** Size of the output. */
  get outputSizeBytes(): number {
    return this.#sizeBytes + (this.#steps.at(-1)?.delta ?? 0);
  }

  /** Whether an offset leads to a byte of the source. 0 does not: it is how writers say that there is none. */
  leadsToByte(offset: number): boolean {
    return offset > 0 && offset < this.#sizeBytes;
  }

  /**
   * How far what an offset leads to moves: a byte of the source, or the void past its end, as in a file that was cut,
   * which must not come to lie inside the output. An offset of 0 or into bytes that are left out stays as it is.
   */
  deltaAt(offset: number): number {
    if (offset <= 0 || offset > Number.MAX_SAFE_INTEGER) return 0;
    const step = this.#lastStepAt(offset);
    return step === undefined || offset < step.keptFrom ? 0 : step.delta;
  }

  #lastStepAt(offset: number) {
    let low = 0;
    let high = this.#steps.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#steps[middle]?.start ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return this.#steps[low - 1];
  }
}
