import { createRequire } from 'node:module';
import type { JumbfBox } from './jumbf.ts';
import { manifestIn } from './manifest-store.ts';
import type * as Judge from './revocation/judge-response.ts';
import { signatureIn } from './signature-headers.ts';
import { signerChainOf, type TrustLists } from './trust-lists.ts';

/** Responses of a signature that are judged. */
const MAX_RESPONSES = 8;

const require = createRequire(import.meta.url);

/** The state of a signer's certificate by what its signature carries; `problem` is null where it carries nothing. */
export type StapledStatus =
  | Exclude<Judge.CertificateState, { readonly status: 'none' }>
  | { readonly status: 'none'; readonly problem: string | null };

/**
 * Judges the OCSP responses that the signature of a store's active manifest carries (C2PA 2.2 §10.3.2.6). `signedAt` is the time of a
 * trusted time-stamp: without one it was signed at any time up to now.
 */
export function stapledStatusOf(store: Uint8Array, lists: TrustLists, signedAt: Date | null): StapledStatus {
  const responses = responsesIn(manifestIn(store));
  if (responses.length === 0) return { status: 'none', problem: null };
  const chain = signerChainOf(store);
  const [leaf] = chain;
  const issuer = lists.issuerOf(chain);
  if (leaf === undefined || issuer === null)
    return { status: 'none', problem: 'the certificate of the issuer is not known' };
  // Its library takes 0.1 s and 8 MB to load, which signatures without a response are spared.
  const { judgeResponse } = require('./revocation/judge-response.ts') as typeof Judge;
  const found = responses.map((response) => judgeResponse(response, { leaf, issuer }, signedAt ?? new Date()));
  return found.toSorted(
    (one, other) => RANKS.indexOf(one.status) - RANKS.indexOf(other.status),
  )[0] as Judge.CertificateState;
}

/** A revocation outweighs all others, of which the one that says most is taken. */
const RANKS: readonly Judge.CertificateState['status'][] = ['revoked', 'good', 'unknown', 'none'];

function responsesIn(manifest: JumbfBox | undefined): readonly Uint8Array[] {
  try {
    const values = signatureIn(manifest).unsigned.get('rVals');
    const responses: unknown = values instanceof Map ? values.get('ocspVals') : [];
    const found = Array.isArray(responses) ? responses.filter((each) => each instanceof Uint8Array) : [];
    return found.slice(0, MAX_RESPONSES);
  } catch {
    // The reader says what is wrong with a signature that cannot be read.
    return [];
  }
}
