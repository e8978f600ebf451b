import { Builder, LocalSigner } from '@contentauth/c2pa-node';
import type { HardBinding } from '#formats/format-handler.ts';
import { pemOf } from '#provenance/identity/certificate.ts';
import { testIdentity } from '../provenance/test-identity.ts';

let signer: LocalSigner | null = null;

/** A manifest of nothing but a hard binding, made by the official SDK under a throw-away certificate. */
export async function makeManifest({ label, data }: HardBinding): Promise<Buffer> {
  const definition = {
    title: 'test',
    claim_generator_info: [{ name: 'test', version: '1' }],
    assertions: [{ label, data }],
  };
  const builder = Builder.withJson(definition as never, { verify: { verify_after_sign: false } });
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  builder.setNoEmbed(true);
  const standIn = { buffer: Buffer.alloc(0), mimeType: 'application/octet-stream' };
  signer ??= testSigner();
  return builder.sign(signer, standIn, { buffer: null });
}

function testSigner(): LocalSigner {
  const { chain, privateKey } = testIdentity();
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return LocalSigner.newSigner(Buffer.from(chain.map(pemOf).join('')), Buffer.from(key), 'es256');
}
