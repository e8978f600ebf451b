import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A PEM chain and its key: the service and the SDK sign with the same one. */
export interface Identity {
  readonly certificatePath: string;
  readonly keyPath: string;
  /** The certificate of the authority, which trust lists hold. */
  readonly rootPath: string;
}

const LEAF_EXTENSIONS = `keyUsage=critical,digitalSignature
extendedKeyUsage=emailProtection
basicConstraints=critical,CA:FALSE
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
`;

/** Makes a throw-away ES256 identity with openssl. */
export function makeIdentity(folder: string, organization = 'Bench'): Identity {
  mkdirSync(folder, { recursive: true });
  const at = (name: string): string => join(folder, name);
  const openssl = (command: string, ...further: readonly string[]): void => {
    execFileSync('openssl', [...command.split(' '), ...further], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  };
  writeFileSync(at('leaf.ext'), LEAF_EXTENSIONS);
  openssl('ecparam -name prime256v1 -genkey -noout -out root.key');
  openssl('req -x509 -new -key root.key -days 90 -out root.pem -subj', `/O=${organization}/CN=Root`);
  openssl('genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out leaf.key');
  openssl('req -new -key leaf.key -out leaf.csr -subj', `/O=${organization}/CN=Signer`);
  openssl(
    'x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 90 -extfile leaf.ext -out leaf.pem',
  );
  writeFileSync(at('chain.pem'), readFileSync(at('leaf.pem'), 'utf8') + readFileSync(at('root.pem'), 'utf8'));
  return { certificatePath: at('chain.pem'), keyPath: at('leaf.key'), rootPath: at('root.pem') };
}
