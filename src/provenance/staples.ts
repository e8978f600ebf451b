import assert from 'node:assert';
import { hash } from 'node:crypto';
import * as cborg from 'cborg';
import { AppError } from '#errors/app-error.ts';
import { manifestIn } from './manifest-store.ts';
import { COSE_SIGN1_TAG, signatureIn } from './signature-headers.ts';
import type { Signer } from './signer.ts';

/** The word of a responder about one certificate, as it is sent to workers. */
export type HeldStatus =
  | {
      readonly status: 'good';
      /** The response in base64. */
      readonly response: string;
      /** The time after which it proves nothing, as in ISO 8601. */
      readonly endsAt: string;
    }
  | { readonly status: 'revoked'; readonly revokedAt: string }
  | { readonly status: 'none'; readonly problem: string };

/** The OCSP responses of a node as plain data. */
export interface StapleData {
  /** True where nothing is signed without a response. */
  readonly isRequired: boolean;
  /** By the fingerprint of the certificate. */
  readonly certificates: Readonly<Record<string, HeldStatus>>;
}

/** The responses in force, which may be replaced at any time. */
export interface StapleSource {
  readonly current: Staples;
}

/** Covers what differs between responses of one responder: an ECDSA signature, and its certificate when that is renewed. */
const MARGIN_BYTES = 256;

/** A response that ends sooner is not used: readers compare its end with a time-stamp that is still to come. */
const MIN_REMAINING_MS = 60_000;

/** The OCSP responses that signatures carry. */
export class Staples {
  readonly data: StapleData;

  constructor(data: StapleData) {
    this.data = data;
  }

  /**
   * Returns the bytes that a signature needs for a response; 0 where there is no response, and none is required. Throws
   * `IDENTITY_REVOKED` or `OCSP_RESPONSE_MISSING`.
   */
  reserve(signer: Signer): number {
    const response = this.#responseOf(leafOf(signer));
    return response === null ? 0 : stapleBytes(response) + MARGIN_BYTES;
  }

  /**
   * Returns the response for a signature in which bytes were reserved for it; null where there is none that fits, and none is
   * required. Throws what `reserve` throws.
   */
  take(signer: Signer, reservedBytes: number): Buffer | null {
    const response = this.#responseOf(leafOf(signer));
    if (response === null || stapleBytes(response) <= reservedBytes) return response;
    if (this.data.isRequired) throw missing('the response is larger than when the output was planned');
    return null;
  }

  /** Returns why nothing is signed with a certificate; null where it is. */
  refusalOf(leaf: Buffer): string | null {
    try {
      this.#responseOf(leaf);
      return null;
    } catch (error) {
      return (error as AppError).message;
    }
  }

  #responseOf(leaf: Buffer): Buffer | null {
    const held = this.data.certificates[fingerprintOf(leaf)] ?? NOT_ASKED;
    if (held.status === 'revoked') throw new AppError('IDENTITY_REVOKED', { revokedAt: held.revokedAt });
    const problem = held.status === 'none' ? held.problem : problemOfEnd(held.endsAt);
    if (held.status === 'good' && problem === null) return Buffer.from(held.response, 'base64');
    if (this.data.isRequired) throw missing(problem ?? '');
    return null;
  }
}

function problemOfEnd(endsAt: string): string | null {
  const isEnding = Date.parse(endsAt) < Date.now() + MIN_REMAINING_MS;
  return isEnding ? `the last response ended on ${endsAt}` : null;
}

/** The status of a certificate whose responder has not answered. */
export const NOT_ASKED: HeldStatus = { status: 'none', problem: 'the responder has not answered yet' };

/** Those of a deployment that staples none. */
export const NO_STAPLES = new Staples({ isRequired: false, certificates: {} });

/** Returns the name that a certificate has here. */
export function fingerprintOf(certificate: Buffer): string {
  return hash('sha256', certificate);
}

function leafOf({ certificateChain: [leaf] }: Signer): Buffer {
  assert(leaf !== undefined, 'a signer has a certificate');
  return leaf;
}

function missing(problem: string): AppError {
  return new AppError('OCSP_RESPONSE_MISSING', { problem });
}

// The SDK cannot staple OCSP responses (c2pa-rs#2193). The headers `pad` and `rVals` of a COSE_Sign1 are both left out of what is
// signed (C2PA 2.2 §13.2, §10.4), so one takes bytes of the other after the signature was made.

/** Returns the size that a stapled response takes in the header of a signature. */
function stapleBytes(response: Uint8Array): number {
  return cborg.encode({ rVals: { ocspVals: [response] } }).length - 1;
}

/**
 * Staples an OCSP response to the signature of the active manifest of a store, whose `pad` has to be longer than it by 256 bytes. The
 * size of the store and all that is signed stay as they are.
 */
export function stapleResponse(store: Buffer, response: Uint8Array): Buffer {
  const { protectedBytes, unsigned, payload, value, bytes } = signatureIn(manifestIn(store));
  const pad = unsigned.get('pad');
  assert(pad instanceof Uint8Array, 'a signature with space for a response has padding');
  const headers = new Map(unsigned).set('rVals', { ocspVals: [response] });
  headers.set('pad', new Uint8Array(pad.length - stapleBytes(response)));
  const stapled = cborg.encode(new cborg.Tagged(COSE_SIGN1_TAG, [protectedBytes, headers, payload, value]));
  assert.equal(stapled.length, bytes.length, 'a signature with a response is as long as without');
  bytes.set(stapled);
  return store;
}
