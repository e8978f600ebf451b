import { readStoreGraph, type StoreGraph } from './store-graph.ts';

/** A parent may bring so much of a manifest store; every output carries it. */
export const MAX_STORE_BYTES = 64 * 1024 * 1024;

/**
 * Limits of the chain of manifests that an output gets with all of its ingredients. Readers of C2PA validate a manifest
 * again wherever an ingredient leads to it, so that a few kilobytes of manifests that share their ingredients would take
 * them minutes: 4,095 validations took 1.0 s, and 200 manifests in a row 0.1 s.
 */
export const CHAIN_LIMITS = {
  /** Manifests in a row, the output's own included: more are refused by the official readers. */
  depth: 200,
  /** Validations of manifests, counted as often as an ingredient leads to them. */
  validations: 1000,
  /** Bytes of manifests that are hashed for these validations. */
  validatedBytes: 256 * 1024 * 1024,
  /**
   * Pairs of assertions within one manifest, for these validations: readers search all of a manifest's for each of them
   * (1,000 took 0.6 s, 4,000 took 9.8 s).
   */
  assertionPairs: 4_000_000,
} as const;

/** Costs double with every manifest at worst: they are counted up to here. */
const LARGEST_COST = 1e15;

/** What of a chain exceeds its limit. */
export interface ExceededLimit {
  readonly measure: keyof typeof CHAIN_LIMITS;
  readonly value: number;
  readonly limit: number;
}

type Costs = Record<keyof typeof CHAIN_LIMITS, number>;

/** The ingredients of one output, admitted one after the other as long as their chains together are within the limits. */
export class ChainAllowance {
  /** The output's own manifest counts as well. */
  #spent: Costs = { depth: 1, validations: 1, validatedBytes: 0, assertionPairs: 0 };
  readonly #admitted = new Set<string>();

  /**
   * Counts a manifest store in, unless it exceeds a limit, which is returned then. One whose active manifest was admitted
   * before counts once. Throws where it is no store that can be read.
   */
  admit(store: Uint8Array): { readonly exceeded: ExceededLimit | null; readonly activeDigest: string } {
    const graph = readStoreGraph(store);
    const { activeDigest } = graph;
    if (this.#admitted.has(activeDigest)) return { exceeded: null, activeDigest };
    const costs = this.#with(costsOf(graph, graph.active, new Map()));
    const over = Object.entries(costs).find(([measure, value]) => value > CHAIN_LIMITS[measure as keyof Costs]);
    if (over !== undefined) {
      const [measure, value] = over as [keyof Costs, number];
      return { exceeded: { measure, value, limit: CHAIN_LIMITS[measure] }, activeDigest };
    }
    this.#spent = costs;
    this.#admitted.add(activeDigest);
    return { exceeded: null, activeDigest };
  }

  #with(costs: Costs): Costs {
    return {
      depth: Math.max(this.#spent.depth, 1 + costs.depth),
      validations: this.#spent.validations + costs.validations,
      validatedBytes: this.#spent.validatedBytes + costs.validatedBytes,
      assertionPairs: this.#spent.assertionPairs + costs.assertionPairs,
    };
  }
}

/** Whether a manifest store is one that must not be validated: its ingredients exceed a limit, or cannot be told. */
export function exceedsChainLimits(store: Uint8Array): boolean {
  try {
    return new ChainAllowance().admit(store).exceeded !== null;
  } catch {
    // Whoever attaches it says why it cannot be read.
    return true;
  }
}

/**
 * What validating a manifest with everything that it leads to costs. The recursion is bounded by the manifests' count.
 * Throws where a manifest leads back to itself: `known` holds null for those that are being counted.
 */
function costsOf({ manifests }: Pick<StoreGraph, 'manifests'>, label: string, known: Map<string, Costs | null>): Costs {
  const before = known.get(label);
  if (before === null) throw new Error('a manifest is among its own ingredients');
  if (before !== undefined) return before;
  known.set(label, null);
  const { sizeBytes = 0, assertionCount = 0, ingredients = [] } = manifests.get(label) ?? {};
  const costs: Costs = { depth: 1, validations: 1, validatedBytes: sizeBytes, assertionPairs: assertionCount ** 2 };
  for (const ingredient of ingredients) {
    const added = costsOf({ manifests }, ingredient, known);
    costs.depth = Math.max(costs.depth, 1 + added.depth);
    costs.validations = sum(costs.validations, added.validations);
    costs.validatedBytes = sum(costs.validatedBytes, added.validatedBytes);
    costs.assertionPairs = sum(costs.assertionPairs, added.assertionPairs);
  }
  known.set(label, costs);
  return costs;
}

function sum(first: number, second: number): number {
  return Math.min(first + second, LARGEST_COST);
}
