import type { ByteSink } from '#bytes/byte-sink.ts';
import type { ByteSource } from '#bytes/byte-source.ts';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import type { FormatHandler, MediaLayout } from '#formats/format-handler.ts';
import type { HardBinding } from '#formats/hard-binding.ts';

/** A source over bytes in memory that counts what is read of it. */
export interface MemorySource extends ByteSource {
  /** Bytes read so far, a byte that is read twice counted twice. */
  readonly bytesRead: number;
}

export function memorySource(bytes: Uint8Array, name = 'input.bin'): MemorySource {
  let bytesRead = 0;
  return {
    name,
    sizeBytes: bytes.length,
    get bytesRead() {
      return bytesRead;
    },
    async read(target, offset, signal) {
      signal.throwIfAborted();
      if (offset < 0 || offset + target.length > bytes.length) {
        throw new RangeError(`read of ${target.length} bytes at ${offset} of ${bytes.length}`);
      }
      target.set(bytes.subarray(offset, offset + target.length));
      bytesRead += target.length;
    },
    close: () => Promise.resolve(),
  };
}

/** A sink into memory; `bytes` is the output so far. */
export function memorySink(sizeBytes: number): ByteSink & { readonly bytes: Buffer } {
  const bytes = Buffer.alloc(sizeBytes);
  return {
    bytes,
    destination: 'memory:',
    async write(chunk, position) {
      bytes.set(chunk, position);
    },
    seal: () => Promise.resolve(),
    commit: () => Promise.resolve(),
    discard: () => Promise.resolve(),
  };
}

/** Embeds a manifest into a file by a format handler, without any signing. */
export interface Embedded<Layout> {
  readonly layout: Layout;
  readonly output: Buffer;
  readonly binding: HardBinding;
  readonly bytesRead: number;
}

/** Embeds any bytes as if they were a manifest of `manifest.length` and some zeros. */
export async function embed<Layout extends MediaLayout>(
  format: FormatHandler<Layout>,
  input: Uint8Array,
  manifest: Uint8Array,
): Promise<Embedded<Layout>> {
  const { signal } = new AbortController();
  const source = memorySource(input);
  const layout = await format.readLayout(source, signal);
  const { bytesRead } = source;
  const { plan, binding } = format.planEmbedding(layout, manifest.length);
  const sink = memorySink(outputSizeBytes(plan));
  const digests = await executePlan(plan, source, sink, { signal });
  await fillHole(plan, sink, manifest, signal);
  return { layout, output: sink.bytes, binding: binding(digests), bytesRead };
}

/** The reason that a format gives for refusing a file. */
export async function refusalOf<Layout extends MediaLayout>(
  format: FormatHandler<Layout>,
  input: Uint8Array,
): Promise<string> {
  try {
    await embed(format, input, Buffer.alloc(8));
  } catch (error) {
    if (error instanceof AppError) return error.reason;
    throw error;
  }
  return 'accepted';
}
