import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import type { ByteRange, MediaLayout } from '#formats/format-handler.ts';
import { joinStores } from '#provenance/manifest-store.ts';

/** The parts of a layout that hold its manifest store. */
type StoreLayout = Pick<MediaLayout, 'manifest' | 'elements'>;

/** Returns the ranges of a file with its manifest store: one, or two where an update stands beside what it updates, which is first. */
export function storeRangesOf({ manifest, elements }: StoreLayout): readonly ByteRange[] {
  if (manifest === null) return [];
  return elements.length > 1 ? elements.flatMap(({ content }) => content ?? []) : [manifest];
}

/** Reads the manifest store of a file, as readers see it. */
export async function readStore(source: ByteSource, layout: StoreLayout, signal: AbortSignal): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const { offset, length } of storeRangesOf(layout))
    parts.push(Buffer.from(await readRange(source, offset, length, signal)));
  return joinStores(parts);
}
