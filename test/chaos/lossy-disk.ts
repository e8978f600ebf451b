import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Holes take no room. */
const DISK_BYTES = 8 * 2 ** 30;

/**
 * Keeps from the disk what nobody syncs: no commit of the journal by time, no data before the names of files, and no help
 * for programs that rename what they have not synced (ext4(5)).
 */
const MOUNT_OPTIONS = 'loop,commit=300,data=writeback,noauto_da_alloc';

/** So often is it tried to unmount, and so long waited in between. */
const UNMOUNTS_TRIED = 100;
const UNMOUNT_PAUSE_S = '0.1';

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: from now on nothing reaches the device, the journal neither. */
const SHUTDOWN = 'open(my $f, "<", $ARGV[0]) or die $!; my $how = pack("L", 2); ioctl($f, 0x8004587d, $how) or die $!';

/** A file system in a file, which loses what was not synced, as a disk does whose power is cut. Needs root. */
export interface LossyDisk {
  readonly path: string;
  /** Cuts the power and gives it back. Nothing may be open on the disk. */
  cutPower(): void;
  close(): void;
}

/** Makes one in a folder, and rejects where it does not lose what it should. */
export function openLossyDisk(folder: string): LossyDisk {
  const [image, path] = [join(folder, 'disk.img'), join(folder, 'disk')];
  writeFileSync(image, '');
  truncateSync(image, DISK_BYTES);
  run('mkfs.ext4', '-q', image);
  mkdirSync(path);
  const mount = () => run('mount', '-o', MOUNT_OPTIONS, image, path);
  const unmount = () => unmountWhenIdle(path);
  mount();
  const cutPower = () => {
    run('perl', '-e', SHUTDOWN, path);
    unmount();
    mount();
  };
  const unsynced = join(path, 'unsynced');
  writeFileSync(unsynced, 'x');
  cutPower();
  assert.ok(!existsSync(unsynced), 'the disk loses what is not synced');
  return { path, cutPower, close: unmount };
}

/** A process that was killed lets go of its files only when its last thread has come back from the disk. */
function unmountWhenIdle(path: string): void {
  for (let tried = 1; ; tried += 1) {
    try {
      return run('umount', path);
    } catch (error) {
      if (tried === UNMOUNTS_TRIED) throw error;
      run('sleep', UNMOUNT_PAUSE_S);
    }
  }
}

function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
