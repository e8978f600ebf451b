import { createHash } from 'node:crypto';
import * as cborg from 'cborg';
import { z } from 'zod';

/** What a manifest store holds, as far as it decides what reading it costs. */
export interface StoreGraph {
  /** By label. */
  readonly manifests: ReadonlyMap<string, StoredManifest>;
  /** The label of the last manifest, which says what the asset is. */
  readonly active: string;
  /** SHA-256 of the active manifest, in hexadecimal. */
  readonly activeDigest: string;
}

export interface StoredManifest {
  readonly sizeBytes: number;
  readonly assertionCount: number;
  /** The labels of the manifests that its ingredients lead to, each as often as it is led to. */
  readonly ingredients: readonly string[];
}

/** Bound of the manifests of a store, whether anything leads to them or not. */
const MAX_MANIFESTS = 1000;
/** Bound of the boxes that are looked at: those of a store, of its manifests, and of their lists of assertions. */
const MAX_BOXES = 100_000;
/** Bound of all ingredient assertions together: as objects they take many times as much. */
const MAX_INGREDIENT_BYTES = 8 * 1024 * 1024;
/** In a description box (ISO/IEC 19566-5): 16 bytes of type and one of toggles stand before the label. */
const LABEL_OFFSET = 17;

/** The two fields by which an ingredient assertion names a manifest: that of its third version, and that of the others. */
const ingredientAssertion = z.object({
  activeManifest: z.object({ url: z.string() }).nullish(),
  c2pa_manifest: z.object({ url: z.string() }).nullish(),
});

/**
 * Finds the manifests of a store and which lead to which, by its boxes alone, in time that grows with its size. Throws
 * where the boxes do not fit into one another, or ingredients cannot be seen, as in a compressed manifest.
 */
export function readStoreGraph(store: Uint8Array): StoreGraph {
  const walk = new BoxWalk();
  const [root] = walk.boxes(Buffer.from(store.buffer, store.byteOffset, store.byteLength), 1);
  if (root?.type !== 'jumb') throw new Error('it is no manifest store');
  const found = walk.children(root);
  const active = found.at(-1);
  if (active === undefined) throw new Error('it holds no manifest');
  if (found.length > MAX_MANIFESTS) throw new Error(`it holds more than ${MAX_MANIFESTS} manifests`);
  const labels = new Set(found.map(({ label }) => label));
  const manifests = new Map<string, StoredManifest>();
  let ingredientBytes = 0;
  for (const { label, content } of found) {
    const { sizeBytes = 0, assertionCount = 0, ingredients = [] } = manifests.get(label) ?? {};
    // Wherever they stand: readers may find the list of assertions by its type or by its label.
    const assertions = walk.children({ content }).flatMap((box) => walk.children(box));
    const led = assertions.filter((box) => box.label.startsWith('c2pa.ingredient'));
    ingredientBytes += led.reduce((sum, box) => sum + box.content.length, 0);
    if (ingredientBytes > MAX_INGREDIENT_BYTES)
      throw new Error(`its ingredients have over ${MAX_INGREDIENT_BYTES} bytes`);
    manifests.set(label, {
      sizeBytes: sizeBytes + content.length,
      assertionCount: assertionCount + assertions.length,
      ingredients: [...ingredients, ...led.flatMap((box) => leadsTo(box, labels))],
    });
  }
  const activeDigest = createHash('sha256').update(active.content).digest('hex');
  return { manifests, active: active.label, activeDigest };
}

function leadsTo({ content }: Pick<RawBox, 'content'>, labels: ReadonlySet<string>): string[] {
  const { activeManifest, c2pa_manifest: manifest } = ingredientAssertion.parse(decodedCbor(content));
  return [activeManifest, manifest].flatMap((named) =>
    named == null ? [] : named.url.split('/').filter((part) => labels.has(part)),
  );
}

/** The content of an assertion's one CBOR box. */
function decodedCbor(assertion: Buffer): unknown {
  const [, cbor, ...others] = new BoxWalk().boxes(assertion);
  if (cbor?.type !== 'cbor' || others.length > 0) throw new Error('an ingredient of it is no CBOR');
  return cborg.decode(cbor.content, { rejectDuplicateMapKeys: true, tags: TAGS });
}

/** Times and addresses may be tagged (RFC 8949 §3.4.1, §3.4.5.3). */
const TAGS = { 0: untagged, 32: untagged };

function untagged(decode: () => unknown): unknown {
  return decode();
}

interface RawBox {
  readonly type: string;
  readonly content: Buffer;
}

/** Parses boxes, of which it counts how many. */
class BoxWalk {
  #count = 0;

  /** The superboxes directly in one, with their labels. */
  children({ content }: Pick<RawBox, 'content'>): { readonly label: string; readonly content: Buffer }[] {
    const boxes = this.boxes(content);
    if (boxes.some(({ type }) => type === 'brob')) throw new Error('it holds a compressed manifest');
    return boxes
      .filter(({ type }) => type === 'jumb')
      .map((box) => ({ label: labelOf(box.content), content: box.content }));
  }

  /** The boxes in `bytes`, which they have to fill, or the first few of them. */
  boxes(bytes: Buffer, maxCount = Number.POSITIVE_INFINITY): RawBox[] {
    const found: RawBox[] = [];
    for (let at = 0; at < bytes.length && found.length < maxCount; ) {
      this.#count += 1;
      if (this.#count > MAX_BOXES) throw new Error(`it holds more than ${MAX_BOXES} boxes`);
      const { sizeBytes, headerSizeBytes } = extentOf(bytes, at);
      if (sizeBytes < headerSizeBytes || at + sizeBytes > bytes.length) throw new Error('its boxes do not fit');
      const type = bytes.toString('latin1', at + 4, at + 8);
      found.push({ type, content: bytes.subarray(at + headerSizeBytes, at + sizeBytes) });
      at += sizeBytes;
    }
    return found;
  }
}

function extentOf(bytes: Buffer, at: number): { readonly sizeBytes: number; readonly headerSizeBytes: number } {
  const leftBytes = bytes.length - at;
  const compact = leftBytes < 8 ? -1 : bytes.readUInt32BE(at);
  if (compact === 0) return { sizeBytes: leftBytes, headerSizeBytes: 8 };
  if (compact !== 1) return { sizeBytes: compact, headerSizeBytes: 8 };
  return { sizeBytes: leftBytes < 16 ? -1 : Number(bytes.readBigUInt64BE(at + 8)), headerSizeBytes: 16 };
}

function labelOf(superbox: Buffer): string {
  const [description] = new BoxWalk().boxes(superbox, 1);
  if (description?.type !== 'jumd') throw new Error('a box has no description');
  const end = description.content.indexOf(0, LABEL_OFFSET);
  return description.content.toString('utf8', LABEL_OFFSET, end < 0 ? undefined : end);
}
