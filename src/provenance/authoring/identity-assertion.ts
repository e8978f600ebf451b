import assert from 'node:assert';
import * as cborg from 'cborg';
import type { IdentityAssertion, ManifestDefinition, SignerPayload } from '../sdk/sdk.ts';
import { COSE_SIGN1_TAG } from '../signature-headers.ts';
import type { Signer, SigningAlgorithm } from '../signer.ts';

// The publisher's identity assertion (CAWG Identity Assertion 1.2, §8.2): the SDK makes the assertion, and takes a finished COSE
// signature for it.

const ROLE = 'cawg.publisher';

/** COSE's numbers (RFC 9052 §3.1, RFC 9053, RFC 8230, RFC 9360). */
const ALGORITHM_HEADER = 1;
const CHAIN_HEADER = 33;
const ALGORITHMS: Readonly<Record<SigningAlgorithm, number>> = {
  es256: -7,
  es384: -35,
  es512: -36,
  ps256: -37,
  ps384: -38,
  ps512: -39,
  ed25519: -8,
};

/** The SDK fills an assertion with two paddings, of this size at least together with their heads. */
const MIN_PADDING_BYTES = 15;

/**
 * Returns the assertion by which a publisher vouches for the hard binding and all other assertions of a manifest but its actions.
 * Its size depends on nothing but the labels of these, the certificates and the kind of key.
 */
export function identityAssertionOf(publisher: Signer, { json }: ManifestDefinition): IdentityAssertion {
  const assertions = json['assertions'] as readonly { readonly label: string }[];
  const labels = assertions.map(({ label }) => label).filter((label) => label !== 'c2pa.actions');
  return {
    sizeBytes: sizeBytesOf(publisher, labels),
    role: ROLE,
    referencedLabels: labels.flatMap((label) => labelsInClaim(label, labels)),
    async sign(payload) {
      const missing = labels.length - payload.referenced_assertions.length;
      assert.equal(missing, 0, 'an identity assertion refers to each assertion that it is meant for');
      return await coseSign1(encodedPayload(payload), publisher);
    },
  };
}

/** Returns what the SDK may call an assertion in the claim: it counts others whose labels begin with its own as its like. */
function labelsInClaim(label: string, labels: readonly string[]): string[] {
  const alike = labels.filter((other) => other !== label && other.startsWith(label));
  return [label, ...alike.map((_other, index) => `${label}__${index + 1}`)];
}

/** Returns the size of the assertion, whose references may name the hash function or leave that to the claim. */
function sizeBytesOf({ certificateChain, algorithm, signatureSizeBytes }: Signer, labels: readonly string[]): number {
  const references = labels.map((label) => ({
    url: `self#jumbf=c2pa.assertions/${labelsInClaim(label, labels).at(-1)}`,
    alg: 'sha256',
    hash: new Uint8Array(32),
  }));
  const payload = { referenced_assertions: references, sig_type: 'cawg.x509.cose', role: [ROLE] };
  const headers = protectedHeaders(algorithm, certificateChain);
  const signature = envelope(headers, new Uint8Array(signatureSizeBytes));
  const content = cborg.encode({
    signer_payload: cborg.decode(encodedPayload(payload)),
    signature,
    pad1: new Uint8Array(0),
  });
  return content.length + MIN_PADDING_BYTES;
}

/** Encodes a payload with its fields in the order of readers, which encode it anew to verify the signature. */
function encodedPayload({ referenced_assertions: references, sig_type: type, role }: SignerPayload): Uint8Array {
  return encodeInOrder(
    new Map<string, unknown>([
      [
        'referenced_assertions',
        references.map(
          ({ url, alg, hash }) =>
            new Map<string, unknown>([
              ['url', url],
              ...(alg == null ? [] : [['alg', alg] as const]),
              ['hash', bytes(hash)],
            ]),
        ),
      ],
      ['sig_type', type],
      ['role', role],
    ]),
  );
}

/** Signs a payload that the result leaves out (RFC 9052 §4.1 and §4.4). */
async function coseSign1(payload: Uint8Array, publisher: Signer): Promise<Buffer> {
  const headers = protectedHeaders(publisher.algorithm, publisher.certificateChain);
  const signed = encodeInOrder(['Signature1', headers, new Uint8Array(0), payload]);
  return Buffer.from(envelope(headers, await publisher.sign(signed)));
}

function protectedHeaders(algorithm: SigningAlgorithm, chain: readonly Buffer[]): Uint8Array {
  const [leaf, ...issuers] = chain.map(bytes);
  return encodeInOrder(
    new Map<number, unknown>([
      [ALGORITHM_HEADER, ALGORITHMS[algorithm]],
      [CHAIN_HEADER, issuers.length === 0 ? leaf : [leaf, ...issuers]],
    ]),
  );
}

function envelope(headers: Uint8Array, signature: Uint8Array): Uint8Array {
  return encodeInOrder(new cborg.Tagged(COSE_SIGN1_TAG, [headers, new Map(), null, bytes(signature)]));
}

/** Encodes with the keys of maps in the order in which they stand there. */
function encodeInOrder(value: unknown): Uint8Array {
  return cborg.encode(value, { mapSorter: () => 0 });
}

/** Returns what cborg encodes as a byte string. */
function bytes(given: Uint8Array | readonly number[]): Uint8Array {
  return Uint8Array.from(given);
}
