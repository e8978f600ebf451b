import { createPublicKey, hash, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { Handle, Mechanism, PKCS11 } from 'pkcs11js';
import { Semaphore } from '#concurrency/semaphore.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { hashOf } from '../key-signer.ts';
import type { DeviceAlgorithm, DeviceContext, DeviceKey, SettingsOf } from './device-key.ts';
import { loadModule, type Pkcs11Module } from './pkcs11-module.ts';
import { isLost, problemOfModule } from './pkcs11-problems.ts';
import { type KeySession, OBJECT_CLASS, Pkcs11Token } from './pkcs11-token.ts';

/** Larger than any signature of these algorithms. */
const MAX_SIGNATURE_BYTES = 2048;

/** Opens a key of a token. */
export async function openPkcs11Key(
  settings: SettingsOf<'pkcs11'>,
  { stateDir, timeoutMs }: Pick<DeviceContext, 'stateDir' | 'timeoutMs'>,
): Promise<DeviceKey> {
  const module = await loadModule(settings.module);
  return new Pkcs11Key(module, new Pkcs11Token(module.functions, settings, stateDir), settings.key, timeoutMs);
}

class Pkcs11Key implements DeviceKey {
  readonly key: string;
  readonly device: string;
  readonly #module: Pkcs11Module;
  readonly #token: Pkcs11Token;
  readonly #timeoutMs: number;
  readonly #opening = new Semaphore(1);
  #idle: KeySession[] = [];
  /** The generation of the module that the idle sessions are of. */
  #generation: number;

  constructor(module: Pkcs11Module, token: Pkcs11Token, key: string, timeoutMs: number) {
    this.key = key;
    this.device = token.device;
    this.#module = module;
    this.#generation = module.generation;
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  readPublicKey(signal: AbortSignal): Promise<KeyObject> {
    return this.#withSession('', signal, async ({ session }) => {
      const handle = this.#token.findObject(session, OBJECT_CLASS.publicKey);
      return readTokenPublicKey(this.#module.functions, session, handle);
    });
  }

  sign(data: Uint8Array, algorithm: DeviceAlgorithm, signal: AbortSignal): Promise<Buffer> {
    const { mechanism, input } = signingInput(data, algorithm);
    return this.#withSession(algorithm, signal, ({ session, key, keyType }) => {
      if (keyType !== KEY_TYPES.get(algorithm.slice(0, 2))) {
        throw new AppError('SIGNER_KEY_MISMATCH', { key: this.key, device: this.device });
      }
      const { functions } = this.#module;
      functions.C_SignInit(session, mechanism, key);
      return this.#bound(functions.C_SignAsync(session, input, Buffer.alloc(MAX_SIGNATURE_BYTES)));
    });
  }

  async close(): Promise<void> {
    for (const open of this.#idleNow().splice(0)) this.#close(open);
  }

  /** Runs a task with a session of its own; once more, with a module that was initialized again, where the device was away. */
  async #withSession<T>(algorithm: string, signal: AbortSignal, task: (open: KeySession) => Promise<T>): Promise<T> {
    const { generation } = this.#module;
    try {
      return await this.#once(task, signal).catch(async (error: unknown) => {
        if (!isLost(error)) throw error;
        await this.#module.restart(generation, signal);
        return this.#once(task, signal);
      });
    } catch (error) {
      throw problemOfModule(error, this.device, algorithm);
    }
  }

  #once<T>(task: (open: KeySession) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#module.run(async () => {
      const open = this.#idleNow().pop() ?? (await this.#opening.run(() => this.#token.openSession()));
      try {
        const result = await task(open);
        this.#idle.push(open);
        return result;
      } catch (error) {
        this.#close(open);
        throw error;
      }
    }, signal);
  }

  #idleNow(): KeySession[] {
    if (this.#generation !== this.#module.generation) this.#idle = [];
    this.#generation = this.#module.generation;
    return this.#idle;
  }

  /**
   * Kills the process where the module does not return: its thread can be ended in no other way, and a new process begins with a
   * module that has just been loaded.
   */
  async #bound<T>(call: Promise<T>): Promise<T> {
    const timer = setTimeout(() => process.kill(process.pid, 'SIGKILL'), 2 * this.#timeoutMs);
    try {
      return await call;
    } finally {
      clearTimeout(timer);
    }
  }

  #close({ session }: KeySession): void {
    try {
      this.#module.functions.C_CloseSession(session);
    } catch {
      // The device has closed it.
    }
  }
}

// Mechanisms and parameters of PKCS #11, version 2.40, and CKM_EDDSA of version 3.0.
const CKM_ECDSA = 0x1041;
const CKM_RSA_PKCS_PSS = 0x0d;
const CKM_EDDSA = 0x1057;
/** A constant of pkcs11js. */
const CK_PARAMS_RSA_PSS = 5;
const KEY_TYPES: ReadonlyMap<string, number> = new Map(Object.entries({ es: 0x3, ps: 0x0, rs: 0x0, ed: 0x40 }));
const HASHES = {
  sha256: { sizeBytes: 32, mechanism: 0x250, maskGeneration: 2, withRsaPkcs: 0x40 },
  sha384: { sizeBytes: 48, mechanism: 0x260, maskGeneration: 3, withRsaPkcs: 0x41 },
  sha512: { sizeBytes: 64, mechanism: 0x270, maskGeneration: 4, withRsaPkcs: 0x42 },
} as const;

/** Returns the mechanism of an algorithm, and its input: the digest, but for mechanisms that hash by themselves. */
function signingInput(data: Uint8Array, algorithm: DeviceAlgorithm): { mechanism: Mechanism; input: Buffer } {
  const hashName = hashOf(algorithm);
  if (hashName === null) return { mechanism: { mechanism: CKM_EDDSA }, input: Buffer.from(data) };
  const { sizeBytes: saltLen, mechanism: hashAlg, maskGeneration: mgf, withRsaPkcs } = HASHES[hashName];
  if (algorithm.startsWith('rs')) return { mechanism: { mechanism: withRsaPkcs }, input: Buffer.from(data) };
  const input = hash(hashName, data, 'buffer');
  if (algorithm.startsWith('es')) return { mechanism: { mechanism: CKM_ECDSA }, input };
  const parameter = { type: CK_PARAMS_RSA_PSS, hashAlg, mgf, saltLen };
  return { mechanism: { mechanism: CKM_RSA_PKCS_PSS, parameter }, input };
}

// Attributes and key types of PKCS #11, version 2.40, and those of Edwards curves of version 3.0.
const CKA_KEY_TYPE = 0x100;
const CKA_MODULUS = 0x120;
const CKA_PUBLIC_EXPONENT = 0x122;
const CKA_EC_PARAMS = 0x180;
const CKA_EC_POINT = 0x181;
const CKK_RSA = 0x0;
const CKK_EC = 0x3;

/** Object identifiers of curves in DER, as `CKA_EC_PARAMS` holds them, and their names in a JWK. */
const CURVES: ReadonlyMap<string, { readonly crv: string; readonly sizeBytes: number }> = new Map(
  Object.entries({
    '06082a8648ce3d030107': { crv: 'P-256', sizeBytes: 32 },
    '06052b81040022': { crv: 'P-384', sizeBytes: 48 },
    '06052b81040023': { crv: 'P-521', sizeBytes: 66 },
  }),
);
const ED25519_SIZE_BYTES = 32;

/** Reads the public key of an object. Throws errors of the module, and any where the attributes are of no such key. */
function readTokenPublicKey(module: PKCS11, session: Handle, object: Handle): KeyObject {
  const read = (type: number): Buffer => itemAt(module.C_GetAttributeValue(session, object, [{ type }]), 0).value;
  const keyType = read(CKA_KEY_TYPE).readUInt32LE();
  if (keyType === CKK_RSA) {
    const [n, e] = [read(CKA_MODULUS), read(CKA_PUBLIC_EXPONENT)];
    return keyOf({ kty: 'RSA', n: base64url(n), e: base64url(e) });
  }
  const point = read(CKA_EC_POINT);
  // The point stands at the end, in an OCTET STRING or bare.
  if (keyType !== CKK_EC)
    return keyOf({ kty: 'OKP', crv: 'Ed25519', x: base64url(point.subarray(-ED25519_SIZE_BYTES)) });
  const { crv, sizeBytes } = CURVES.get(read(CKA_EC_PARAMS).toString('hex')) ?? { crv: 'unknown', sizeBytes: 0 };
  const [x, y] = [point.subarray(-2 * sizeBytes, -sizeBytes), point.subarray(-sizeBytes)];
  return keyOf({ kty: 'EC', crv, x: base64url(x), y: base64url(y) });
}

function keyOf(key: JsonWebKey): KeyObject {
  return createPublicKey({ key, format: 'jwk' });
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url');
}
