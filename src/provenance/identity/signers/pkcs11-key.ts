import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Mechanism, PKCS11 } from 'pkcs11js';
import { Semaphore } from '#concurrency/semaphore.ts';
import { AppError } from '#errors/app-error.ts';
import {
  type DeviceAlgorithm,
  type DeviceContext,
  type DeviceKey,
  type SettingsOf,
  SIGNER_THREADS,
} from './device-key.ts';
import { isSessionLost, nameOf, problemOfModule } from './pkcs11-problems.ts';
import { readTokenPublicKey } from './pkcs11-public-key.ts';
import { type KeySession, OBJECT_CLASS, Pkcs11Token } from './pkcs11-token.ts';
import { digest, hashOf } from './signature-forms.ts';

/** Sessions that sign at once. Each occupies a thread meanwhile; the others read files, resolve names and verify. */
const MAX_SESSIONS = SIGNER_THREADS - 8;

/** Larger than any signature of these algorithms. */
const MAX_SIGNATURE_BYTES = 2048;

/** Opens a key of a token. */
export async function openPkcs11Key(
  settings: SettingsOf<'pkcs11'>,
  { stateDir, timeoutMs }: Pick<DeviceContext, 'stateDir' | 'timeoutMs'>,
): Promise<DeviceKey> {
  const module = await loadModule(settings.module);
  return new Pkcs11Key(module, new Pkcs11Token(module, settings, stateDir), settings.key, timeoutMs);
}

class Pkcs11Key implements DeviceKey {
  readonly key: string;
  readonly device: string;
  readonly #module: PKCS11;
  readonly #token: Pkcs11Token;
  readonly #timeoutMs: number;
  readonly #limit = new Semaphore(MAX_SESSIONS);
  readonly #opening = new Semaphore(1);
  #idle: KeySession[] = [];

  constructor(module: PKCS11, token: Pkcs11Token, key: string, timeoutMs: number) {
    this.key = key;
    this.device = token.device;
    this.#module = module;
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  readPublicKey(signal: AbortSignal): Promise<KeyObject> {
    return this.#withSession('', signal, async ({ session }) => {
      const handle = this.#token.findObject(session, OBJECT_CLASS.publicKey);
      return readTokenPublicKey(this.#module, session, handle);
    });
  }

  sign(data: Uint8Array, algorithm: DeviceAlgorithm, signal: AbortSignal): Promise<Buffer> {
    const { mechanism, input } = signingInput(data, algorithm);
    return this.#withSession(algorithm, signal, ({ session, key, keyType }) => {
      if (keyType !== KEY_TYPES[algorithm.slice(0, 2)]) {
        throw new AppError('SIGNER_KEY_MISMATCH', { key: this.key, device: this.device });
      }
      this.#module.C_SignInit(session, mechanism, key);
      return this.#bound(this.#module.C_SignAsync(session, input, Buffer.alloc(MAX_SIGNATURE_BYTES)));
    });
  }

  async close(): Promise<void> {
    this.#drop();
  }

  /** Runs a task with a session of its own; once more with a new one where the device has closed it. */
  async #withSession<T>(algorithm: string, signal: AbortSignal, task: (open: KeySession) => Promise<T>): Promise<T> {
    // The permit is held until the module returns, whoever still waits for it.
    return this.#limit.run(
      async () => {
        try {
          return await this.#once(task);
        } catch (error) {
          if (!isSessionLost(error)) throw problemOfModule(error, this.device, algorithm);
          this.#drop();
          return await this.#once(task).catch((again: unknown) => {
            throw problemOfModule(again, this.device, algorithm);
          });
        }
      },
      1,
      signal,
    );
  }

  async #once<T>(task: (open: KeySession) => Promise<T>): Promise<T> {
    const open = this.#idle.pop() ?? (await this.#opening.run(() => this.#token.openSession()));
    try {
      const result = await task(open);
      this.#idle.push(open);
      return result;
    } catch (error) {
      this.#close(open);
      throw error;
    }
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

  #drop(): void {
    for (const open of this.#idle.splice(0)) this.#close(open);
  }

  #close({ session }: KeySession): void {
    try {
      this.#module.C_CloseSession(session);
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
const KEY_TYPES: Readonly<Record<string, number>> = { es: 0x3, ps: 0x0, rs: 0x0, ed: 0x40 };
const HASHES = {
  sha256: { sizeBytes: 32, mechanism: 0x250, maskGeneration: 2, withRsaPkcs: 0x40 },
  sha384: { sizeBytes: 48, mechanism: 0x260, maskGeneration: 3, withRsaPkcs: 0x41 },
  sha512: { sizeBytes: 64, mechanism: 0x270, maskGeneration: 4, withRsaPkcs: 0x42 },
} as const;

/** Returns the mechanism of an algorithm, and its input: the digest, but for mechanisms that hash by themselves. */
function signingInput(data: Uint8Array, algorithm: DeviceAlgorithm): { mechanism: Mechanism; input: Buffer } {
  const hash = hashOf(algorithm);
  if (hash === null) return { mechanism: { mechanism: CKM_EDDSA }, input: Buffer.from(data) };
  const { sizeBytes: saltLen, mechanism: hashAlg, maskGeneration: mgf, withRsaPkcs } = HASHES[hash];
  if (algorithm.startsWith('rs')) return { mechanism: { mechanism: withRsaPkcs }, input: Buffer.from(data) };
  const input = digest(data, hash);
  if (algorithm.startsWith('es')) return { mechanism: { mechanism: CKM_ECDSA }, input };
  const parameter = { type: CK_PARAMS_RSA_PSS, hashAlg, mgf, saltLen };
  return { mechanism: { mechanism: CKM_RSA_PKCS_PSS, parameter }, input };
}

const CKF_OS_LOCKING_OK = 0x2;

async function loadModule(path: string): Promise<PKCS11> {
  const { PKCS11: Module } = await loadPackage();
  if (!existsSync(path)) throw new AppError('SIGNER_MODULE_UNUSABLE', { module: path, problem: 'it does not exist' });
  const module = new Module();
  try {
    module.load(path);
    // Without this flag, modules take it that one thread alone calls them.
    module.C_Initialize({ flags: CKF_OS_LOCKING_OK });
  } catch (cause) {
    const name = nameOf(cause);
    if (name === 'CKR_CRYPTOKI_ALREADY_INITIALIZED') return module;
    const problem = name.startsWith('CKR_') ? `it reported ${name}` : 'it is no PKCS #11 library for this system';
    throw new AppError('SIGNER_MODULE_UNUSABLE', { module: path, problem }, { cause });
  }
  return module;
}

async function loadPackage(): Promise<typeof import('pkcs11js')> {
  try {
    return (await import('pkcs11js')).default;
  } catch (cause) {
    throw new AppError('PKCS11JS_NOT_BUILT', {}, { cause });
  }
}
