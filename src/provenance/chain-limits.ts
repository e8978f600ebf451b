import { hash } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { decodeCbor, type JumbfBox, onlyCbor, onlyChild, parseJumbf } from './jumbf.ts';
import { readManifestStore } from './manifest-store.ts';

/** Limits the manifest store of an ingredient: every output carries it. */
export const MAX_STORE_BYTES = 64 * 1024 * 1024;

/**
 * Limits of the chain of manifests that an output gets with all of its ingredients. Readers of C2PA validate a manifest
 * again for every ingredient that refers to it, so a few kilobytes of manifests that share their ingredients would take
 * them minutes: 4,095 validations took 1.0 s, and a chain of 200 manifests 0.1 s.
 */
export const CHAIN_LIMITS = {
  /** Length of the chain, the output's manifest included: the official readers refuse more. */
  depth: 200,
  /** Validations of manifests, counted once for each ingredient that refers to them. */
  validations: 1000,
  /** Bytes of manifests that are hashed for these validations. */
  validatedBytes: 256 * 1024 * 1024,
  /**
   * Pairs of assertions within one manifest, for these validations: readers search all of a manifest's for each of them
   * (1,000 took 0.6 s, 4,000 took 9.8 s).
   */
  assertionPairs: 4_000_000,
} as const;

/** Saturates the costs, which in the worst case double with every manifest. */
const MAX_COST = 1e15;

/** A limit that a chain exceeds. */
interface ExceededLimit {
  readonly measure: keyof typeof CHAIN_LIMITS;
  readonly value: number;
  readonly limit: number;
}

type Costs = Record<keyof typeof CHAIN_LIMITS, number>;
const MEASURES = Object.keys(CHAIN_LIMITS) as (keyof Costs)[];

/** The limits of one output, shared by its ingredients, which are admitted one after the other. */
export class ChainAllowance {
  /** Starts with the output's own manifest. */
  #spent: Costs = { depth: 1, validations: 1, validatedBytes: 0, assertionPairs: 0 };
  readonly #admitted = new Set<string>();

  /**
   * Admits a manifest store, or returns the limit that it would exceed. One whose active manifest was admitted before costs
   * nothing. Throws an Error where the store cannot be parsed.
   */
  admit(store: Uint8Array): { readonly exceeded: ExceededLimit | null; readonly activeDigest: string } {
    const graph = readStoreGraph(store);
    const { activeDigest } = graph;
    if (this.#admitted.has(activeDigest)) return { exceeded: null, activeDigest };
    const costs = withIngredient(this.#spent, costsOf(graph, graph.active, new Map()));
    for (const measure of MEASURES) {
      const [value, limit] = [costs[measure], CHAIN_LIMITS[measure]];
      if (value > limit) return { exceeded: { measure, value, limit }, activeDigest };
    }
    this.#spent = costs;
    this.#admitted.add(activeDigest);
    return { exceeded: null, activeDigest };
  }
}

/**
 * Throws `MANIFEST_TOO_COMPLEX` where validating the manifest store of a file or publication would take readers minutes. One that cannot
 * be parsed here a reader refuses, or the budgets of the input end it.
 */
export function refuseCostlyChain(name: string, store: Uint8Array): void {
  const exceeded = exceededLimitOf(store);
  if (exceeded != null) throw new AppError('MANIFEST_TOO_COMPLEX', { name, ...exceeded });
}

/** Tells whether a manifest store must not be validated: it exceeds a limit, or its ingredients cannot be parsed. */
export function exceedsChainLimits(store: Uint8Array): boolean {
  return exceededLimitOf(store) !== null;
}

/** Returns the limit that a store exceeds; null for none, and undefined for one that cannot be parsed here. */
function exceededLimitOf(store: Uint8Array): ExceededLimit | null | undefined {
  try {
    return new ChainAllowance().admit(store).exceeded;
  } catch {
    // The reader that refuses it, or the code that attaches it, says why.
    return undefined;
  }
}

/**
 * Returns the costs of validating a manifest with all ingredients below it. The number of manifests limits the recursion.
 * Throws where a manifest refers back to itself: `known` holds null for those that are being counted.
 */
function costsOf({ manifests }: Pick<StoreGraph, 'manifests'>, label: string, known: Map<string, Costs | null>): Costs {
  const before = known.get(label);
  if (before === null) throw new Error('a manifest is among its own ingredients');
  if (before !== undefined) return before;
  known.set(label, null);
  const { sizeBytes = 0, assertionCount = 0, ingredients = [] } = manifests.get(label) ?? {};
  const own: Costs = { depth: 1, validations: 1, validatedBytes: sizeBytes, assertionPairs: assertionCount ** 2 };
  const costs = ingredients.map((each) => costsOf({ manifests }, each, known)).reduce(withIngredient, own);
  known.set(label, costs);
  return costs;
}

/** Returns the costs of a manifest that gets another ingredient. */
function withIngredient(costs: Costs, added: Costs): Costs {
  return {
    depth: Math.max(costs.depth, 1 + added.depth),
    validations: sum(costs.validations, added.validations),
    validatedBytes: sum(costs.validatedBytes, added.validatedBytes),
    assertionPairs: sum(costs.assertionPairs, added.assertionPairs),
  };
}

function sum(first: number, second: number): number {
  return Math.min(first + second, MAX_COST);
}

/** The manifests of a store, as far as they decide what reading it costs. */
interface StoreGraph {
  /** By label. */
  readonly manifests: ReadonlyMap<string, StoredManifest>;
  /** The label of the active manifest, which is the last one. */
  readonly active: string;
  /** SHA-256 of the active manifest, in hexadecimal. */
  readonly activeDigest: string;
}

interface StoredManifest {
  readonly sizeBytes: number;
  readonly assertionCount: number;
  /** The labels of the manifests that its ingredients refer to, each as often as it is referred to. */
  readonly ingredients: readonly string[];
}

/** Limits the manifests of a store, whether anything refers to them or not. */
const MAX_MANIFESTS = 1000;
/** Limits all ingredient assertions together: decoded they take many times as much. */
const MAX_INGREDIENT_BYTES = 8 * 1024 * 1024;
/** A store holds manifests, which hold lists, which hold assertions. */
const ASSERTION_LEVEL = 3;

/** The two fields by which an ingredient assertion names a manifest: that of its third version, and that of the others. */
const ingredientAssertion = z.object({
  activeManifest: z.object({ url: z.string() }).nullish(),
  c2pa_manifest: z.object({ url: z.string() }).nullish(),
});

/**
 * Finds the manifests of a store and their references to each other from its boxes alone, in time linear in its size.
 * Throws what `readManifestStore` throws, and where a limit is exceeded or an ingredient cannot be decoded.
 */
export function readStoreGraph(store: Uint8Array): StoreGraph {
  const root = readManifestStore(store, ASSERTION_LEVEL);
  const active = itemAt(root.children, root.children.length - 1);
  if (root.children.length > MAX_MANIFESTS) throw new Error(`it holds more than ${MAX_MANIFESTS} manifests`);
  const labels = new Set(root.children.map(({ label }) => label));
  const manifests = new Map<string, StoredManifest>();
  let ingredientBytes = 0;
  for (const manifest of root.children) {
    const assertions = onlyChild(manifest, 'c2pa.assertions')?.children ?? [];
    const references = assertions.filter(({ label }) => label.startsWith('c2pa.ingredient'));
    ingredientBytes += references.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (ingredientBytes > MAX_INGREDIENT_BYTES)
      throw new Error(`its ingredients have over ${MAX_INGREDIENT_BYTES} bytes`);
    manifests.set(manifest.label, {
      sizeBytes: manifest.bytes.length,
      assertionCount: assertions.length,
      ingredients: references.flatMap((ingredient) => referredManifests(ingredient, labels)),
    });
  }
  const activeDigest = hash('sha256', active.bytes);
  return { manifests, active: active.label, activeDigest };
}

function referredManifests({ whole }: JumbfBox, labels: ReadonlySet<string>): string[] {
  const { data } = ingredientAssertion.safeParse(decodeCbor(onlyCbor(parseJumbf(whole))));
  if (data === undefined) throw new Error('an ingredient of it cannot be decoded');
  return [data.activeManifest, data.c2pa_manifest].flatMap((named) =>
    named == null ? [] : named.url.split('/').filter((part) => labels.has(part)),
  );
}
