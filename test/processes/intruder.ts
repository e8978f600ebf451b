// A process that was taken over: does what it is told to with the rights that it has, and answers the error's code, or null.
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs';

/** The instructions to an intruder. */
export type Intrusion =
  | { readonly kind: 'read' | 'write' | 'unmount'; readonly path: string }
  | { readonly kind: 'rename'; readonly path: string; readonly to: string }
  /** Reads the memory of a process, at an address that is mapped in it. */
  | { readonly kind: 'memory'; readonly pid: number; readonly address: number }
  | { readonly kind: 'variables' };

process.on('disconnect', () => process.exit());
process.on('message', (intrusion: Intrusion) => process.send?.(resultOf(intrusion)));

function resultOf(intrusion: Intrusion): unknown {
  try {
    return attempt(intrusion);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'FAILED';
  }
}

function attempt(intrusion: Intrusion): unknown {
  switch (intrusion.kind) {
    case 'read':
      readFileSync(intrusion.path);
      return null;
    case 'write':
      writeFileSync(intrusion.path, 'written');
      return null;
    case 'rename':
      renameSync(intrusion.path, intrusion.to);
      return null;
    case 'unmount':
      execFileSync('umount', [intrusion.path], { stdio: 'ignore' });
      return null;
    case 'memory':
      return readMemory(intrusion.pid, intrusion.address);
    case 'variables':
      return Object.keys(process.env);
  }
}

function readMemory(pid: number, address: number): null {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    readSync(memory, Buffer.alloc(16), 0, 16, address);
    return null;
  } finally {
    closeSync(memory);
  }
}
