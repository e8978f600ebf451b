import assert from 'node:assert/strict';
import {
  type BigIntStats,
  constants,
  existsSync,
  fstatSync,
  fsync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/descriptor.ts';
import { shareSync } from '../staging/sync-folder.ts';

const syncInBackground = promisify(fsync);

/**
 * Tells whether paths are resolved relative to open folders. Node has no `openat`; Linux resolves `/proc/self/fd/<n>/name`
 * in the same way. On other systems, and without /proc, the folder's path is resolved again for each call: somebody who
 * may write to the base folder of outputs can then have an output redirected by replacing a folder at the right moment.
 */
export const RESOLVES_BY_HANDLE = process.platform === 'linux' && existsSync('/proc/self/fd');

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/**
 * An open folder that outputs are written to. What is done with its entries is done in the folder that was opened, and
 * checked, whatever stands at its path meanwhile. Throws the system's errors as they are.
 */
export class FolderHandle {
  /** The path at which it was opened, with links resolved. */
  readonly path: string;
  readonly #file: Descriptor;
  #users = 1;
  #identity: string | undefined;

  private constructor(file: Descriptor, path: string) {
    this.#file = file;
    this.path = path;
  }

  /** Opens a folder wherever links lead; `path` tells where that was. */
  static follow(path: string): FolderHandle {
    const file = Descriptor.open(path, O_RDONLY | O_DIRECTORY);
    try {
      return new FolderHandle(file, RESOLVES_BY_HANDLE ? readlinkSync(pathOf(file)) : realpathSync.native(path));
    } catch (error) {
      void file.close();
      throw error;
    }
  }

  /** Opens a folder in this one, wherever links lead. */
  follow(name: string): FolderHandle {
    return FolderHandle.follow(this.entry(name));
  }

  /** Opens a folder in this one; an error (ELOOP or ENOTDIR) where a link stands there. */
  enter(name: string): FolderHandle {
    const file = Descriptor.open(this.entry(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return new FolderHandle(file, join(this.path, name));
  }

  /** Tells whether `path` leads to this folder, and the folder still lies where it was opened. */
  isAt(path: string): boolean {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (stats === undefined || identityOf(stats) !== this.#ownIdentity) return false;
    return !RESOLVES_BY_HANDLE || readlinkSync(this.self) === this.path;
  }

  /** A path to the folder itself, for calls of this process. */
  get self(): string {
    return RESOLVES_BY_HANDLE ? pathOf(this.#file) : this.path;
  }

  /** A path to an entry, for calls of this process while the folder is open. */
  entry(name: string): string {
    return `${this.self}/${name}`;
  }

  /** Makes the names of what was created, renamed or removed in the folder durable. */
  sync(): Promise<void> {
    return shareSync(this.#ownIdentity, () => this.#file.use(syncInBackground));
  }

  /** Adds a user, who has to close the handle too. */
  share(): FolderHandle {
    this.#users += 1;
    return this;
  }

  /** To be called once by each user; the last one closes the folder. */
  async close(): Promise<void> {
    this.#users -= 1;
    assert(this.#users >= 0, 'each user closes a folder once');
    if (this.#users === 0) await this.#file.close();
  }

  get #ownIdentity(): string {
    this.#identity ??= identityOf(fstatSync(this.#file.number, { bigint: true }));
    return this.#identity;
  }
}

function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

function pathOf(file: Descriptor): string {
  return `/proc/self/fd/${file.number}`;
}
