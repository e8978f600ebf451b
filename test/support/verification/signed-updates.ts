import { Builder } from '@contentauth/c2pa-node';
import { pemOf } from '#provenance/identity/pem.ts';
import { defaultIdentity } from '../manifests/test-identity.ts';

const CAPTURE = { create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' };

/** Has the official SDK sign a file, as new or as an update of its manifest (C2PA 2.2 §11.2.3). */
export async function signBySdk(
  bytes: Uint8Array,
  mimeType: string,
  intent: 'create' | 'update',
  core: object = {},
): Promise<Buffer> {
  const definition = { title: 'test', claim_generator_info: [{ name: 'test', version: '1' }] };
  const settings = { core, verify: { verify_after_sign: false }, builder: { thumbnail: { enabled: false } } };
  const builder = Builder.withJson(definition as never, settings as never);
  builder.setIntent((intent === 'update' ? 'update' : CAPTURE) as never);
  const { chain, signer } = defaultIdentity;
  const certs = [Buffer.from(chain.map(pemOf).join(''))];
  const output: { buffer: Buffer | null } = { buffer: null };
  await builder.signConfigAsync(
    (signed: Buffer) => signer.sign(signed),
    { alg: 'es256', certs, reserveSize: 10_000, directCoseHandling: false } as never,
    { buffer: Buffer.from(bytes), mimeType },
    output as never,
  );
  if (output.buffer === null) throw new Error('the file was not signed');
  return output.buffer;
}
