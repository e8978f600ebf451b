import { Builder } from '@contentauth/c2pa-node';
import type { HardBinding } from '#formats/hard-binding.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { defaultIdentity, type TestIdentity } from './test-identity.ts';

/** The size of the signature in a manifest whose size does not matter. */
const RESERVE_BYTES = 4096;

/**
 * A manifest of nothing but a hard binding, made by the official SDK under a throw-away certificate. With `sizeBytes`, the
 * padding of the signature gives it that size; `label` is its own in place of a random one, `others` are further
 * assertions, and `alg` is the hash algorithm of the claim.
 */
export async function makeManifest(
  binding: HardBinding,
  sizeBytes?: number,
  identity: TestIdentity = defaultIdentity,
  label?: string,
  others: readonly HardBinding[] = [],
  alg = 'sha256',
): Promise<Buffer> {
  const definition = {
    ...(label !== undefined && { label }),
    hash_alg: alg,
    title: 'test',
    claim_generator_info: [{ name: 'test', version: '1' }],
    assertions: [binding, ...others],
  };
  const manifest = await signedWith(definition, RESERVE_BYTES, identity);
  if (sizeBytes === undefined || sizeBytes === manifest.length) return manifest;
  return signedWith(definition, RESERVE_BYTES + sizeBytes - manifest.length, identity);
}

async function signedWith(definition: object, reserveSize: number, { chain, signer }: TestIdentity): Promise<Buffer> {
  const builder = Builder.withJson(definition as never, { verify: { verify_after_sign: false } });
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  builder.setNoEmbed(true);
  const standIn = { buffer: Buffer.alloc(0), mimeType: 'application/octet-stream' };
  const certs = [Buffer.from(chain.map(pemOf).join(''))];
  const configuration = { alg: 'es256', certs, reserveSize, directCoseHandling: false } as const;
  const sign = (bytes: Buffer): Promise<Buffer> => signer.sign(bytes);
  return builder.signConfigAsync(sign, configuration, standIn, { buffer: null });
}
