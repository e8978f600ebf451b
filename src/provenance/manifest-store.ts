import { type JumbfBox, onlyChild, parseJumbf } from './jumbf.ts';

// Readers find the parts of a manifest by their types, by their labels, or by their order, each in its own way. A store counts only
// where all of these ways lead to the same parts.

/** The types of manifests: standard ones and updates (C2PA 2.2 §11.1.4). */
const MANIFEST_TYPES = ['c2ma', 'c2um'];

/** The parts of a manifest: the type of each, and the labels that it may have (C2PA 2.2 §11.1.4). */
const PARTS: readonly { readonly type: string; readonly label: RegExp; readonly isRequired: boolean }[] = [
  { type: 'c2as', label: /^c2pa\.assertions$/, isRequired: true },
  { type: 'c2cl', label: /^c2pa\.claim(?:\.v2)?$/, isRequired: true },
  { type: 'c2cs', label: /^c2pa\.signature$/, isRequired: true },
  { type: 'c2vc', label: /^c2pa\.credentials$/, isRequired: false },
  { type: 'c2db', label: /^c2pa\.databoxes$/, isRequired: false },
];

/**
 * Parses a manifest store: manifests with labels of their own, each of one claim, one list of assertions and one signature, perhaps of
 * credentials and data boxes, and of nothing else. `levels` is that of `parseJumbf`. Throws an Error that says what is otherwise, as the
 * end of a sentence.
 */
export function readManifestStore(bytes: Uint8Array, levels?: number): JumbfBox {
  const store = parseJumbf(bytes, levels);
  if (store === undefined) throw new Error('its boxes cannot be parsed');
  if (store.type !== 'c2pa' || store.label !== 'c2pa') throw new Error('it is of another type');
  requireNothingBeside(store);
  if (store.children.length === 0) throw new Error('it holds no manifest');
  if (new Set(store.children.map(({ label }) => label)).size < store.children.length)
    throw new Error('it holds two manifests of one label');
  for (const manifest of store.children) requireManifest(manifest);
  return store;
}

/** Returns the store with the manifests of all parts, in their order; an empty one where one of several parts cannot be read. */
export function joinStores(parts: readonly Buffer[]): Buffer {
  const [first, ...others] = parts;
  if (first === undefined || others.length === 0) return first ?? Buffer.alloc(0);
  const stores = parts.map(parseManifestStore);
  if (!stores.every((store) => store !== undefined)) return Buffer.alloc(0);
  const [base, ...added] = stores;
  const manifests = added.flatMap(({ children }) => children.map(({ whole }) => whole));
  const joined = Buffer.concat([base?.whole ?? first, ...manifests]);
  joined.writeUInt32BE(joined.length);
  return joined;
}

/** Does what `readManifestStore` does, and returns undefined where that throws. */
export function parseManifestStore(bytes: Uint8Array): JumbfBox | undefined {
  try {
    return readManifestStore(bytes);
  } catch {
    // The caller says what follows.
    return undefined;
  }
}

/** Returns the manifest of a label in a store, by default the active one, which is the last; undefined where there is none. */
export function manifestIn(bytes: Uint8Array, label?: string): JumbfBox | undefined {
  const store = parseManifestStore(bytes);
  return label === undefined ? store?.children.at(-1) : onlyChild(store, label);
}

/** Returns the claim of a manifest, which is the only one in a store that `readManifestStore` takes. */
export function claimOf(manifest: JumbfBox | undefined): JumbfBox | undefined {
  return manifest?.children.find(({ type }) => type === 'c2cl');
}

function requireManifest(manifest: JumbfBox): void {
  if (!MANIFEST_TYPES.includes(manifest.type)) throw new Error('it holds a box that is no manifest');
  requireNothingBeside(manifest);
  const isPart = (box: JumbfBox) => PARTS.some(({ type, label }) => box.type === type && label.test(box.label));
  if (!manifest.children.every(isPart)) throw new Error('a manifest of it holds a box that is no part of one');
  for (const { type, isRequired } of PARTS) {
    const { length } = manifest.children.filter((box) => box.type === type);
    if (length > 1 || (isRequired && length === 0))
      throw new Error(`a manifest of it holds ${length} boxes of the type ${type}`);
  }
}

/** Throws where a superbox holds other boxes than superboxes. */
function requireNothingBeside({ contents }: JumbfBox): void {
  if (contents.some(({ type }) => type === 'brob')) throw new Error('it holds a compressed manifest');
  if (contents.length > 0) throw new Error('it holds a box that is no superbox');
}
