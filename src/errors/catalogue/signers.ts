import { entry } from '../entry.ts';

/** Told to callers, who neither know nor need to know where keys are. */
const callersSee = 'The signing identity cannot be used. The log of the service says why.';

/** The key cannot be used now, and may be later without a change of the configuration. */
const AWAY = { class: 'outage', dependencies: ['signer'], callersSee } as const;

/** Errors of keys in devices: tokens, key services, servers. A device is named without its credentials. */
export const signerErrors = {
  SIGNER_MODULE_UNUSABLE: entry<{ module: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ module, problem }) =>
      `The PKCS #11 module "${module}" cannot be used: ${problem}. Correct \`module\` of the signer, or install the vendor's library.`,
    { callersSee },
  ),
  PKCS11JS_NOT_BUILT: entry<object>(
    'INTERNAL_ERROR',
    () =>
      'The package pkcs11js cannot be loaded: it was not built for this Node. Run "npm rebuild pkcs11js" where Attestream is installed; that needs a C++ compiler, make and Python.',
    { callersSee },
  ),
  SIGNER_CREDENTIAL_UNREADABLE: entry<{ file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, problem }) =>
      `The signer's credential "${file}" cannot be read: ${problem}. Correct the path, or let the user of the service read it.`,
    { callersSee },
  ),
  SIGNER_KEY_MISSING: entry<{ key: string; device: string }>(
    'INTERNAL_ERROR',
    ({ key, device }) =>
      `There is no private key "${key}" in ${device}. Correct the name of the key in the signer's configuration, or make that key.`,
    { callersSee },
  ),
  SIGNER_KEY_AMBIGUOUS: entry<{ key: string; device: string }>(
    'INTERNAL_ERROR',
    ({ key, device }) => `There are several private keys "${key}" in ${device}. Give each a label of its own.`,
    { callersSee },
  ),
  SIGNER_KEY_MISMATCH: entry<{ key: string; device: string }>(
    'INTERNAL_ERROR',
    ({ key, device }) =>
      `The key "${key}" in ${device} does not belong to the signing certificate, or signs with another algorithm. Use the certificate that was issued for this key; "attestream identity csr" makes a request for one.`,
    { callersSee },
  ),
  SIGNER_ALGORITHM_UNSUPPORTED: entry<{ algorithm: string; device: string; remedy: string }>(
    'INTERNAL_ERROR',
    ({ algorithm, device, remedy }) => `The signer cannot use ${algorithm} with ${device}. ${remedy}.`,
    { callersSee },
  ),
  SIGNER_AWAY: entry<{ device: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ device, problem }) =>
      `The signing key in ${device} cannot be reached: ${problem}. It is tried again; look at the device and the way to it.`,
    AWAY,
  ),
  SIGNER_ACCESS_REFUSED: entry<{ device: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ device, problem }) =>
      `The signing key in ${device} may not be used: ${problem}. Renew the signer's credential, or give it the right to sign with this key.`,
    AWAY,
  ),
  SIGNER_PIN_REFUSED: entry<{ file: string; token: string }>(
    'INTERNAL_ERROR',
    ({ file, token }) =>
      `The token "${token}" did not accept the PIN in "${file}", or the process ended while it was tried. It is not tried again until that file changes or the service is told to reload. Correct the PIN.`,
    AWAY,
  ),
  SIGNER_PIN_LOCKED: entry<{ token: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ token, problem }) =>
      `The token "${token}" ${problem}, so the PIN is not tried. Log in once with the vendor's program and the right PIN, or have its security officer set a new one.`,
    AWAY,
  ),
};
