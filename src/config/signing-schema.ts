import { z } from 'zod';
import { apiActions, digitalSourceType } from '#contract/actions.ts';
import { identityName } from '#contract/request.ts';
import { isLoopback } from './addresses.ts';

const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/** A path as it stands in the file; `loadConfig` makes it absolute. */
export const path = z
  .string()
  .min(1, 'must not be empty')
  .refine((value) => !value.includes('\0'), 'must not hold a NUL');
export const timeoutMs = z.int().min(1).max(MAX_TIMEOUT_MS);

export const url = z
  .string()
  .refine(
    (value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
    'must be a URL with the scheme https or http',
  );

/** Letters, digits and a few signs, so that it reads the same in records, logs and the labels of metrics. */
export const callerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, ".", "_" and "-"');

/** Limits the authorities of one configuration: each may take `tsa_timeout_ms` before the next is asked. */
const MAX_TIME_STAMP_AUTHORITIES = 8;

/** One address or a list of them; always a list once it is read. */
const timeStampAuthorities = z.union([url.transform((one) => [one]), z.array(url).max(MAX_TIME_STAMP_AUTHORITIES)], {
  error: `must be a URL with the scheme https or http, or a list of up to ${MAX_TIME_STAMP_AUTHORITIES} of them`,
});

const algorithm = z.enum(['es256', 'es384', 'es512', 'ps256', 'ps384', 'ps512', 'ed25519']);

const text = z.string().min(1, 'must not be empty');

const isHttps = (value: string) => new URL(value).protocol === 'https:';

const httpsUrl = url.refine(isHttps, 'must be a URL with the scheme https');

const pemSigner = z.strictObject({
  type: z.literal('pem'),
  private_key_path: path,
  private_key_passphrase: z.string().exactOptional(),
});

/** A key in a token of PKCS #11: hardware security modules, smart cards, libraries of cloud providers. */
const pkcs11Signer = z.strictObject({
  type: z.literal('pkcs11'),
  /** The vendor's library. */
  module: path,
  /** The label of the token. */
  token: text,
  /** The label of the private key. */
  key: text,
  pin_path: path,
});

/** A key behind our own protocol (docs/signers.md). */
const httpSigner = z
  .strictObject({
    type: z.literal('http'),
    /** The address that signing requests are sent to. */
    url: httpsUrl.exactOptional(),
    /** A Unix socket instead; requests to it go to the path `/`. */
    socket_path: path.exactOptional(),
    /** The name of the key that requests ask for. */
    key: text,
    token_path: path.exactOptional(),
    client_certificate_path: path.exactOptional(),
    client_key_path: path.exactOptional(),
    ca_path: path.exactOptional(),
  })
  .refine((given) => (given.url === undefined) !== (given.socket_path === undefined), {
    error: 'needs one of url and socket_path',
  })
  .refine((given) => (given.client_certificate_path === undefined) === (given.client_key_path === undefined), {
    error: 'client_certificate_path and client_key_path must be set together, or neither',
  })
  // A worker that was taken over reaches every server that the signer reaches.
  .refine(({ url, token_path, client_certificate_path }) => !url || token_path || client_certificate_path, {
    error: 'url needs token_path or client_certificate_path',
  });

/** A key of the transit engine of Vault or OpenBao. */
const vaultSigner = z
  .strictObject({
    type: z.literal('vault'),
    url: url.refine(
      (value) => isHttps(value) || isLoopback(new URL(value).hostname.replace(/^\[|\]$/g, '')),
      'must have the scheme https, or lead to this host: a token goes with each request',
    ),
    namespace: text.exactOptional(),
    mount: text.default('transit'),
    key: text,
    token_path: path.exactOptional(),
    role_id_path: path.exactOptional(),
    secret_id_path: path.exactOptional(),
    ca_path: path.exactOptional(),
  })
  .refine((given) => (given.token_path === undefined) !== (given.role_id_path === undefined), {
    error: 'needs one of token_path and role_id_path',
  })
  .refine((given) => given.secret_id_path === undefined || given.role_id_path !== undefined, {
    error: 'secret_id_path needs role_id_path',
  });

/** A key of AWS KMS. Credentials come from the standard AWS chain. */
const awsKmsSigner = z.strictObject({
  type: z.literal('aws_kms'),
  key_id: text,
  region: text.exactOptional(),
  profile: text.exactOptional(),
  endpoint_url: url.exactOptional(),
});

const signer = z.discriminatedUnion('type', [pemSigner, pkcs11Signer, httpSigner, vaultSigner, awsKmsSigner], {
  error: 'must be a table with a type: pem, pkcs11, http, vault or aws_kms',
});

const credential = { certificate_path: path, algorithm: algorithm.exactOptional(), signer };

const identity = z.strictObject({
  ...credential,
  /** `signing.tsa_url` where it is absent. */
  tsa_url: timeStampAuthorities.exactOptional(),
  /** Signs a CAWG identity assertion with the role `cawg.publisher`. */
  publisher: z.strictObject(credential).exactOptional(),
});

export const signing = z
  .strictObject({
    certificate_path: path.exactOptional(),
    private_key_path: path.exactOptional(),
    private_key_passphrase: z.string().exactOptional(),
    algorithm: algorithm.exactOptional(),
    default_identity: identityName.exactOptional(),
    identities: z.record(identityName, identity).default({}),
    tsa_url: timeStampAuthorities.default([]),
    tsa_timeout_ms: timeoutMs.default(10_000),
    tsa_required: z.boolean().default(true),
    ocsp: z.enum(['off', 'staple', 'require']).default('off'),
    digital_source_type: digitalSourceType.exactOptional(),
    actions: apiActions.default([]),
    verify_outputs: z.boolean().default(true),
    verify_fragments: z.enum(['sample', 'all']).default('sample'),
  })
  .refine((given) => (given.certificate_path === undefined) === (given.private_key_path === undefined), {
    error: 'certificate_path and private_key_path must be set together, or neither',
  })
  .refine((given) => given.algorithm === undefined || given.private_key_path !== undefined, {
    error: 'needs signing.private_key_path: the development identity has an algorithm of its own',
    path: ['algorithm'],
  })
  .refine((given) => given.private_key_passphrase === undefined || given.private_key_path !== undefined, {
    error: 'needs signing.private_key_path: the development identity has no passphrase',
    path: ['private_key_passphrase'],
  })
  .refine((given) => given.certificate_path === undefined || Object.keys(given.identities).length === 0, {
    error: 'cannot stand beside signing.certificate_path: make that identity one of signing.identities, or remove them',
    path: ['identities'],
  })
  .superRefine(({ default_identity: name, identities }, context) => {
    const names = Object.keys(identities);
    const problem = problemOfDefault(name, names);
    if (problem !== null) context.addIssue({ code: 'custom', path: ['default_identity'], message: problem });
  });

function problemOfDefault(name: string | undefined, names: readonly string[]): string | null {
  if (name === undefined) return names.length > 1 ? `is missing: choose one of ${names.join(', ')}` : null;
  if (names.includes(name)) return null;
  return names.length === 0 ? 'needs signing.identities' : `must be one of ${names.join(', ')}`;
}
