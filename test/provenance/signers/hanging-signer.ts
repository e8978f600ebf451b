import { X509Certificate } from 'node:crypto';
import type { AppError } from '#errors/app-error.ts';
import { openSigner } from '#provenance/identity/signers/open-signer.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// Signs with a module that does not return, until the process is ended. Its arguments are the settings of the key and its certificate.
const [settings, certificate] = process.argv.slice(2).map(String) as [string, string];
const der = Buffer.from(certificate, 'base64');
const signer = await openSigner(JSON.parse(settings), {
  algorithm: 'es256',
  publicKey: new X509Certificate(der).publicKey,
  certificateChain: [der],
  stateDir: temporaryFolder(),
  timeoutMs: 1_000,
});
process.env['SHIM_MEETING'] = '1000';
await signer.sign(Buffer.alloc(1)).catch((error: AppError) => console.log(error.reason));
