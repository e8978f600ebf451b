import type { KeyObject } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const CHUNK_BYTES = 4 * 1024 * 1024;

/** Returns the forms that a private key of a curve has in memory: its number in both orders of bytes, and its PEM. */
export function formsOfKey(key: KeyObject): readonly Buffer[] {
  const number = Buffer.from(`${key.export({ format: 'jwk' }).d}`, 'base64url');
  // Lines of PEM behind the first, which is the same for all keys of a kind.
  const [, , line = ''] = `${key.export({ type: 'pkcs8', format: 'pem' })}`.split('\n');
  return [number, Buffer.from(number.toReversed()), Buffer.from(line.slice(0, 32))];
}

/**
 * Returns true where one of some texts stands in memory that a process may read or write; false where it has exited. Linux only, as
 * root.
 */
export function holdsInMemory(pid: number, texts: readonly Buffer[]): boolean {
  let memory: number | undefined;
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r');
    return regionsOf(pid).some((region) => holdsInRegion(memory as number, region, texts));
  } catch (error) {
    if (hasEnded(error)) return false;
    throw error;
  } finally {
    if (memory !== undefined) closeSync(memory);
  }
}

/** Tells that a process has exited: the folder of one that its parent has not collected yet stands, and its memory is gone (ESRCH). */
function hasEnded(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'ENOENT');
}

interface Region {
  readonly start: number;
  readonly end: number;
}

function regionsOf(pid: number): Region[] {
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
  return [...maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) r.*$/gm)].map(([, start = '', end = '']) => ({
    start: Number.parseInt(start, 16),
    end: Number.parseInt(end, 16),
  }));
}

function holdsInRegion(memory: number, { start, end }: Region, texts: readonly Buffer[]): boolean {
  const overlapBytes = Math.max(...texts.map(({ length }) => length));
  const chunk = Buffer.alloc(CHUNK_BYTES + overlapBytes);
  for (let position = start; position < end; position += CHUNK_BYTES) {
    const read = readOrNothing(memory, chunk, Math.min(chunk.length, end - position), position);
    if (texts.some((text) => chunk.subarray(0, read).includes(text))) return true;
  }
  return false;
}

/** Regions of the kernel, and those that are gone, cannot be read. */
function readOrNothing(memory: number, chunk: Buffer, length: number, position: number): number {
  try {
    return readSync(memory, chunk, 0, length, position);
  } catch {
    return 0;
  }
}
