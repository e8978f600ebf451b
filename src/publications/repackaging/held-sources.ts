import type { ByteSource } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';

/** Files that are kept open, beside those that are being read. */
const MAX_HELD = 4;

interface HeldSource {
  readonly path: string;
  readonly source: Promise<ByteSource>;
  /** Reads that are under way. */
  users: number;
}

/** Keeps the files of a folder that were read last open: opening one may be a request over the network. */
export class HeldSources {
  readonly #folder: SourceFolder;
  /** The one that was used last stands last. */
  #held: HeldSource[] = [];

  constructor(folder: SourceFolder) {
    this.#folder = folder;
  }

  async use<T>(path: string, signal: AbortSignal, task: (source: ByteSource) => Promise<T>): Promise<T> {
    const known = this.#held.find((held) => held.path === path);
    const held = known ?? { path, source: this.#folder.open(path, signal), users: 0 };
    this.#held = [...this.#held.filter((other) => other !== held), held];
    held.users += 1;
    try {
      return await task(await held.source);
    } catch (error) {
      // What failed to open, or was aborted, is opened anew where it is asked for again.
      this.#held = this.#held.filter((other) => other !== held);
      if (held.users === 1) await closeQuietly(held);
      throw error;
    } finally {
      held.users -= 1;
      await this.#closeUnused(MAX_HELD);
    }
  }

  /** Closes what nobody reads. Safe to call again. */
  async close(): Promise<void> {
    await this.#closeUnused(0);
  }

  async #closeUnused(kept: number): Promise<void> {
    const unused = this.#held.filter(({ users }) => users === 0);
    const closing = unused.slice(0, Math.max(unused.length - kept, 0));
    this.#held = this.#held.filter((held) => !closing.includes(held));
    for (const { source } of closing) await (await source).close();
  }
}

/** The failure that led here is what is told. */
async function closeQuietly({ source }: HeldSource): Promise<void> {
  await source.then((opened) => opened.close()).catch(() => undefined);
}
