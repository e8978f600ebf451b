import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { PackagingPlan } from '../planning/packaging-plan.ts';

/** What is known of one rendition's segments. */
interface Watched {
  readonly folder: string;
  /** The number of the segment that is looked for next. */
  next: number;
}

/**
 * Follows the packager by the segments that appear: it tells no progress itself. A segment is whole when the one after it
 * is there; `wrote` is called then with its path, relative to the output, so that it can be made durable meanwhile.
 */
export class OutputWatch {
  readonly #target: string;
  readonly #watched: readonly Watched[];
  readonly #wrote: (path: string) => void;
  #bytes = 0;

  constructor({ streams }: PackagingPlan, target: string, wrote: (path: string) => void) {
    this.#target = target;
    this.#wrote = wrote;
    this.#watched = streams.filter(({ kind }) => kind !== 'text').map(({ folder }) => ({ folder, next: 1 }));
  }

  /** Looks for new segments and returns the bytes of those that were seen. */
  look(): number {
    for (const watched of this.#watched) this.#lookAt(watched);
    return this.#bytes;
  }

  #lookAt(watched: Watched): void {
    for (;;) {
      const stats = statSync(join(this.#target, segmentPath(watched, watched.next)), { throwIfNoEntry: false });
      if (stats === undefined) return;
      this.#bytes += stats.size;
      if (watched.next > 1) this.#wrote(segmentPath(watched, watched.next - 1));
      watched.next += 1;
    }
  }
}

function segmentPath({ folder }: Watched, number: number): string {
  return `${folder}/${String(number).padStart(5, '0')}.m4s`;
}
