import { extname } from 'node:path';
import { raceTimeout } from '#concurrency/race-abort.ts';
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

/** The answer of a probe that hangs. */
export const FOLDER_HANGS = `the file system did not answer within ${BOUND_MS / 1000} s`;

/** The time for which a process is kept that nobody asks, in milliseconds: many inputs may miss their files at once. */
const IDLE_MS = 10_000;

type ProbeChild = Child<FolderProbe, FolderAnswer>;

/**
 * Tries to use folders, each use in a process of its own: it hangs where a network file system does, and cannot be killed then.
 * No other is started for the same use while it runs.
 */
export class FolderProbes {
  readonly #launcher: Launcher;
  readonly #children = new Map<string, ProbeChild>();
  /** The last probes that were begun, by folder and use. */
  readonly #begun = new Map<string, Promise<unknown>>();
  /** Probes that have not begun: all who ask meanwhile share one. */
  readonly #next = new Map<string, Promise<string | null>>();

  constructor(launcher: Launcher) {
    this.#launcher = launcher;
  }

  /**
   * Resolves with the problem of a folder, as the end of a sentence; with null where it can be used. The probe begins after it
   * was asked for, so that it is evidence of what happened before.
   */
  async problemOf(probe: FolderProbe): Promise<string | null> {
    return await raceTimeout(this.#nextOf(probe), BOUND_MS, FOLDER_HANGS);
  }

  #nextOf(probe: FolderProbe): Promise<string | null> {
    const key = JSON.stringify(probe);
    const waiting = this.#next.get(key);
    if (waiting !== undefined) return waiting;
    const next = Promise.resolve(this.#begun.get(key)).then(() => {
      this.#next.delete(key);
      this.#begun.set(key, next);
      return this.#ask(key, probe);
    });
    this.#next.set(key, next);
    return next;
  }

  async #ask(key: string, probe: FolderProbe): Promise<string | null> {
    try {
      const child = this.#childFor(key);
      const answer = await child.ask(probe, { boundMs: BOUND_MS, because: 'because it hung' });
      if (answer === null) return `the process that uses the folder exited ${child.exit?.cause}`;
      child.whenIdle(IDLE_MS, () => child.kill());
      return answer.problem;
    } catch (error) {
      return (error as Error).message;
    }
  }

  #childFor(key: string): ProbeChild {
    const known = this.#children.get(key);
    if (known?.isAlive === true) return known;
    const child: ProbeChild = new Child(this.#launcher, PROCESS_URL, { execArgv: [] });
    this.#children.set(key, child);
    return child;
  }
}
