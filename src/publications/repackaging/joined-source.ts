import type { ByteSource } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { MediaPart } from '../publication.ts';
import { HeldSources } from './held-sources.ts';

/** A part and where it begins in the joined file. */
interface PlacedPart {
  readonly part: MediaPart;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** Parts of a folder's files, one after the other, as one file: what segments were cut from. */
export class JoinedSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly #held: HeldSources;
  readonly #parts: readonly PlacedPart[];

  /** `sizeOf` gives the size of a whole file. */
  constructor(name: string, folder: SourceFolder, parts: readonly MediaPart[], sizeOf: (path: string) => number) {
    this.name = name;
    this.#held = new HeldSources(folder);
    let offset = 0;
    this.#parts = parts.map((part) => {
      const sizeBytes = part.range?.length ?? sizeOf(part.path);
      const placed = { part, offset, sizeBytes };
      offset += sizeBytes;
      return placed;
    });
    this.sizeBytes = offset;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    const end = offset + target.length;
    for (let at = this.#indexAt(offset); at < this.#parts.length; at += 1) {
      const { part, offset: start, sizeBytes } = this.#parts[at] as PlacedPart;
      if (start >= end) return;
      const from = Math.max(offset, start);
      const to = Math.min(end, start + sizeBytes);
      if (to <= from) continue;
      await this.#readPart(part, from - start, target.subarray(from - offset, to - offset), signal);
    }
  }

  async #readPart({ path, range }: MediaPart, offset: number, target: Uint8Array, signal: AbortSignal): Promise<void> {
    await this.#held.use(path, signal, (source) => source.read(target, (range?.offset ?? 0) + offset, signal));
  }

  /** The last part that begins at or before an offset. */
  #indexAt(offset: number): number {
    let low = 0;
    let high = this.#parts.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.#parts[middle] as PlacedPart).offset <= offset) low = middle;
      else high = middle;
    }
    return low;
  }

  /** What is read later is opened again. */
  async close(): Promise<void> {
    await this.#held.close();
  }
}
