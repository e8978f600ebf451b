import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';

/** In a build, both are JavaScript. */
const PROCESS_URL = new URL(`./folders/folder-probe-process${extname(import.meta.url)}`, import.meta.url);

/** Use of a folder that is tried. */
export interface FolderProbe {
  readonly folder: string;
  /** Writes a file, and deletes it again; otherwise the folder is listed. */
  readonly write: boolean;
  /** True where another file system was mounted there when the service started. */
  readonly wasMounted: boolean;
}

/** The answer of a probe. */
export interface FolderAnswer {
  /** Ends a sentence; null where the folder can be used. */
  readonly problem: string | null;
}

const BOUND_MS = 10_000;

const HANGS = `the file system did not answer within ${BOUND_MS / 1000} s`;

/**
 * Tries to use a folder. The process that does hangs where a network file system does, and cannot be killed then: while it
 * runs, no other is started for the same use of the folder.
 */
export class FolderProbes {
  readonly #launcher: Launcher;
  /** Probes that have not ended, by folder and use: who asks meanwhile gets the same answer. */
  readonly #asking = new Map<string, Promise<string | null>>();

  constructor(launcher: Launcher) {
    this.#launcher = launcher;
  }

  /** Resolves with the problem of a folder, as the end of a sentence; with null where it can be used. */
  async problemOf(probe: FolderProbe): Promise<string | null> {
    const key = JSON.stringify(probe);
    const asking = this.#asking.get(key) ?? this.#ask(probe).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    const elapsed = new AbortController();
    const hangs = sleep(BOUND_MS, HANGS, { signal: elapsed.signal }).catch(() => HANGS);
    const answer = await Promise.race([asking, hangs]);
    elapsed.abort();
    return answer;
  }

  async #ask(probe: FolderProbe): Promise<string | null> {
    try {
      const child = new Child<FolderProbe, FolderAnswer>(this.#launcher, PROCESS_URL, { execArgv: [] });
      const bounds = { boundMs: BOUND_MS, because: 'because it hung' };
      return (await child.askOnce('the probe of a folder', probe, bounds)).problem;
    } catch (error) {
      return (error as Error).message;
    }
  }
}
