import { X509Certificate } from 'node:crypto';
import { pemBlocks } from './identity/pem.ts';
import { manifestIn } from './manifest-store.ts';
import { signatureIn } from './signature-headers.ts';

/** One trust list: its name, and its certificates in PEM. */
export interface TrustList {
  readonly name: string;
  readonly pem: string;
}

/** The trust lists of a deployment as plain data, which is sent to the workers. */
export interface TrustListData {
  /** Anchors of signers. */
  readonly signers: readonly TrustList[];
  /** Anchors of time-stamp authorities. */
  readonly authorities: readonly TrustList[];
  /** Anchors of publishers, who make identity assertions. */
  readonly publishers: readonly TrustList[];
  /** Certificates of publishers themselves, in PEM, or a line with the SHA-256 of each in base64. */
  readonly allowed: readonly TrustList[];
}

/** The trust lists in force, which may be replaced at any time: one judgement takes `current` once. */
export interface TrustSource {
  readonly current: TrustLists;
}

/** A list, and its certificates. */
interface ParsedList {
  readonly name: string;
  readonly anchors: readonly X509Certificate[];
}

/** The trust lists of a deployment. */
export class TrustLists {
  readonly data: TrustListData;
  /** All certificates of signers and authorities in PEM, for the readers; null where there are none. */
  readonly pem: string | null;
  /** Those of signers. */
  readonly signersPem: string | null;
  #signers: readonly ParsedList[] | undefined;
  #authorities: readonly ParsedList[] | undefined;

  constructor(data: TrustListData) {
    this.data = data;
    this.pem = bundleOf([...data.signers, ...data.authorities]);
    this.signersPem = bundleOf(data.signers);
  }

  /**
   * Returns the anchors in PEM that the signer of a store's active manifest is validated with; null for none. The
   * readers know one bundle for signers and authorities: a signer who has the anchor of an authority only gets the
   * bundle without those.
   */
  anchorsFor(store: Uint8Array): string | null {
    if (this.pem === this.signersPem) return this.pem;
    const chain = signerChainOf(store);
    if (this.listOfChain(chain) !== null) return this.pem;
    this.#authorities ??= this.data.authorities.map(parsed);
    return listOf(chain, this.#authorities) === null ? this.pem : this.signersPem;
  }

  /** Returns the name of the list that has an anchor of the signer of a store's active manifest; null for none. */
  listOfSigner(store: Uint8Array): string | null {
    return this.listOfChain(signerChainOf(store));
  }

  /** Returns the issuer of the first certificate of a chain: the next one, or an anchor of signers; null where neither is. */
  issuerOf([leaf, ...others]: readonly X509Certificate[]): X509Certificate | null {
    this.#signers ??= this.data.signers.map(parsed);
    const candidates = [...others, ...this.#signers.flatMap(({ anchors }) => anchors)];
    return candidates.find((each) => leaf?.checkIssued(each) && leaf.verify(each.publicKey)) ?? null;
  }

  /** Returns the name of the list that has an anchor of a signer's certificates; null for none. */
  listOfChain(chain: readonly X509Certificate[]): string | null {
    this.#signers ??= this.data.signers.map(parsed);
    return listOf(chain, this.#signers);
  }
}

/** Trust lists of a deployment that has none. */
export const NO_TRUST_LISTS = new TrustLists({ signers: [], authorities: [], publishers: [], allowed: [] });

function bundleOf(lists: readonly TrustList[]): string | null {
  return lists.length === 0 ? null : lists.map(({ pem }) => pem).join('\n');
}

function parsed({ name, pem }: TrustList): ParsedList {
  return { name, anchors: pemBlocks(pem).map((block) => new X509Certificate(block.pem)) };
}

/** Looks for the anchor only: the reader finds out whether the chain is in order. */
function listOf(chain: readonly X509Certificate[], lists: readonly ParsedList[]): string | null {
  const isAnchored = (anchor: X509Certificate): boolean =>
    chain.some(
      (certificate) =>
        certificate.raw.equals(anchor.raw) || (certificate.checkIssued(anchor) && certificate.verify(anchor.publicKey)),
    );
  return lists.find(({ anchors }) => anchors.some(isAnchored))?.name ?? null;
}

/** The COSE header that holds the certificates of the signer (RFC 9360), by number and, in older manifests, by name. */
const CHAIN_HEADERS = [33, 'x5chain'];
const MAX_CERTIFICATES = 16;

/**
 * Returns the certificates in the signature of a store's active manifest, the signer's first; an empty list where they
 * cannot be read.
 */
export function signerChainOf(store: Uint8Array): X509Certificate[] {
  try {
    const { signed, unsigned } = signatureIn(manifestIn(store));
    const found = [signed, unsigned].flatMap((headers) => CHAIN_HEADERS.map((name) => headers.get(name)));
    const chain = [found.find((value) => value !== undefined)].flat().slice(0, MAX_CERTIFICATES);
    return chain.filter((der) => der instanceof Uint8Array).map((der) => new X509Certificate(der));
  } catch {
    // A signer that the reader trusts has a chain that can be read; of any other no list is named.
    return [];
  }
}
