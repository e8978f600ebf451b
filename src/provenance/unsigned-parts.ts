import { readStoreGraph } from './chain-limits.ts';
import { type JumbfBox, onlyChild } from './jumbf.ts';

/** Boxes of a manifest that its signature covers: the claim, and the assertions by their hashes in it. */
const SIGNED_BOX = /^c2pa\.(?:claim|assertions)/;

/**
 * Returns the parts of a manifest store that no signature covers, into which anybody can put anything where readers accept
 * the store: manifests that the active one does not lead to, headers that a signature leaves out, and boxes beside those
 * of a manifest. `label` is that of the active manifest, by default the last one.
 */
export function unsignedParts(store: JumbfBox, label = store.children.at(-1)?.label): Uint8Array[] {
  const reached = labelsReachedFrom(label, store);
  const ofManifests = store.children.flatMap((manifest) => {
    const isReached = reached.has(manifest.label) && onlyChild(store, manifest.label) !== undefined;
    return isReached ? unsignedIn(manifest) : [manifest.whole];
  });
  return [...looseIn(store), ...ofManifests];
}

function labelsReachedFrom(active: string | undefined, store: JumbfBox): Set<string> {
  const reached = new Set(active === undefined ? [] : [active]);
  try {
    const { manifests } = readStoreGraph(store.whole);
    // Labels that are added meanwhile are visited as well.
    for (const label of reached) for (const other of manifests.get(label)?.ingredients ?? []) reached.add(other);
  } catch {
    // No more is known to be reached.
  }
  return reached;
}

function unsignedIn(manifest: JumbfBox): Uint8Array[] {
  // The signature stands among them with all its headers.
  const others = manifest.children.filter(({ label }) => !SIGNED_BOX.test(label));
  return [...looseIn(manifest), ...others.map(({ whole }) => whole)];
}

/** Returns what a superbox holds beside other superboxes. */
function looseIn({ details, contents }: JumbfBox): Uint8Array[] {
  return [details, ...contents.map(({ bytes }) => bytes)];
}
