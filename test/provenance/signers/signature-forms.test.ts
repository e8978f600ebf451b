import assert from 'node:assert/strict';
import { createPublicKey, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isSignatureOf, p1363OfDer } from '#provenance/identity/signers/signature-forms.ts';
import { testKey } from '../../support/manifests/test-identity.ts';

const SIZES = { es256: 64, es384: 96, es512: 132 } as const;

describe('an ECDSA signature in DER', () => {
  for (const algorithm of ['es256', 'es384', 'es512'] as const) {
    test(`becomes one that verifies, with ${algorithm}`, async () => {
      const key = testKey(algorithm);
      // Short numbers, and those whose first bit is set, come by chance.
      for (let count = 0; count < 300; count += 1) {
        const data = Buffer.from(`${count}`);
        const signature = p1363OfDer(sign(`sha${algorithm.slice(2)}`, data, key), SIZES[algorithm]);
        assert(await isSignatureOf(createPublicKey(key), algorithm, data, signature));
      }
    });
  }

  test('becomes none where it is damaged', () => {
    const der = sign('sha256', Buffer.alloc(1), testKey('es256'));
    const damaged = fc.tuple(fc.nat(der.length - 1), fc.nat(255), fc.nat(der.length));
    fc.assert(
      fc.property(damaged, ([index, value, length]) => {
        const bytes = Buffer.from(der.subarray(0, length));
        if (index < length) bytes[index] = value;
        assert([0, SIZES.es256].includes(p1363OfDer(bytes, SIZES.es256).length));
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => p1363OfDer(Buffer.from(bytes), SIZES.es256).length <= SIZES.es256),
    );
  });
});
