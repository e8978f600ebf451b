import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A certificate for 127.0.0.1 of an authority of its own, for a server or a client. */
export interface ServerCertificate {
  readonly caPath: string;
  readonly certificatePath: string;
  readonly keyPath: string;
  /** Options of `https.createServer`. Clients are trusted of the same authority. */
  readonly server: { readonly key: Buffer; readonly cert: Buffer; readonly ca: Buffer };
}

/** Makes a certificate by OpenSSL. */
export function certifyServer(): ServerCertificate {
  const folder = temporaryFolder();
  const [keyPath, certificatePath] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=Key service of the tests', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyPath];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...subject, ...key, '-out', certificatePath], {
    stdio: 'pipe',
  });
  const cert = readFileSync(certificatePath);
  return { caPath: certificatePath, certificatePath, keyPath, server: { key: readFileSync(keyPath), cert, ca: cert } };
}
