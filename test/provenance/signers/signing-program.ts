import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createKeySigner } from '#provenance/identity/key-signer.ts';
import { openSigner } from '#provenance/identity/signers/open-signer.ts';
import type { Signer } from '#provenance/signer.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// Signs until it is killed, as a signer process does, and says so once. Its arguments are the settings of the key and its certificate.
const [settings, certificate] = process.argv.slice(2).map(String) as [string, string];
const der = Buffer.from(certificate, 'base64');
const signer = await open(JSON.parse(settings));
await signer.sign(Buffer.alloc(1));
console.log('signing');
for (;;) await signer.sign(Buffer.alloc(1024));

function open(given: Parameters<typeof openSigner>[0] | { type: 'pem'; private_key_path: string }): Promise<Signer> {
  const { publicKey } = new X509Certificate(der);
  if (given.type === 'pem') {
    const key = createPrivateKey(readFileSync(given.private_key_path));
    return Promise.resolve(createKeySigner(key, 'es256', [der]));
  }
  const context = { algorithm: 'es256', certificateChain: [der], stateDir: temporaryFolder() } as const;
  return openSigner(given, { ...context, publicKey });
}
