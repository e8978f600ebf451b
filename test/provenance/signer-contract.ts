import assert from 'node:assert/strict';
import { constants, verify, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import type { Signer } from '#provenance/signer.ts';

/** Algorithms whose signature takes some 0.03 ms, which need not be made off the event loop. */
const QUICK: readonly string[] = ['es256', 'ed25519'];

/** The obligations of every `Signer`, wherever it keeps its key. */
export function signerContract(name: string, open: () => Promise<Signer>): void {
  test(`${name}: signs what the leaf certificate verifies`, async () => {
    const signer = await open();
    const data = Buffer.from('what is to be signed');
    const signature = await signer.sign(data);
    assert.equal(signature.length, signer.signatureSizeBytes);
    assert(isSignatureOf(signer, data, signature));
    assert(!isSignatureOf(signer, Buffer.from('something else'), signature));
  });

  test(`${name}: signs many at once, each for itself`, async () => {
    const signer = await open();
    const all = Array.from({ length: 16 }, (_, index) => Buffer.from(`piece ${index}`));
    const signatures = await Promise.all(all.map((data) => signer.sign(data)));
    for (const [index, data] of all.entries())
      assert(isSignatureOf(signer, data, signatures[index] ?? Buffer.alloc(0)));
  });

  test(`${name}: holds a chain from the leaf up, without the root`, async () => {
    const chain = (await open()).certificateChain.map((der) => new X509Certificate(der));
    assert(chain.length > 0);
    for (const [index, certificate] of chain.entries()) {
      assert(!certificate.verify(certificate.publicKey), 'no certificate of the chain is self-signed');
      const issuer = chain[index + 1];
      if (issuer !== undefined) assert(certificate.verify(issuer.publicKey));
    }
  });

  test(`${name}: leaves the event loop free while it signs with what takes long`, async () => {
    const signer = await open();
    if (QUICK.includes(signer.algorithm)) return;
    let isSigned = false;
    const signing = signer.sign(Buffer.alloc(1024)).then(() => {
      isSigned = true;
    });
    // Microtasks keep the event loop from going on: a signature that is there after them was made on it.
    for (let count = 0; count < 100; count += 1) await null;
    assert(!isSigned);
    await signing;
  });
}

function isSignatureOf({ algorithm, certificateChain }: Signer, data: Buffer, signature: Buffer): boolean {
  const key = new X509Certificate(certificateChain[0] ?? Buffer.alloc(0)).publicKey;
  if (algorithm === 'ed25519') return verify(null, data, key, signature);
  const hash = `sha${algorithm.slice(2)}`;
  if (algorithm.startsWith('es')) return verify(hash, data, { key, dsaEncoding: 'ieee-p1363' }, signature);
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST;
  return verify(hash, data, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }, signature);
}
