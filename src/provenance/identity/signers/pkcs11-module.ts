import { existsSync } from 'node:fs';
import type { PKCS11 } from 'pkcs11js';
import { Semaphore } from '#concurrency/semaphore.ts';
import { AppError } from '#errors/app-error.ts';
import { SIGNER_THREADS } from './device-key.ts';
import { isLost, nameOf } from './pkcs11-problems.ts';

/** Calls at once. Each occupies a thread meanwhile; the other threads read files, resolve names and verify. */
const MAX_CALLS = SIGNER_THREADS - 8;

const CKF_OS_LOCKING_OK = 0x2;

/** Modules by their paths: the keys of a process share them. */
const modules = new Map<string, Pkcs11Module>();

/** Loads a module once. Throws `SIGNER_MODULE_UNUSABLE` or `PKCS11JS_NOT_BUILT`; one whose device is away is loaded. */
export async function loadModule(path: string): Promise<Pkcs11Module> {
  const { PKCS11: Functions } = await loadPackage();
  const known = modules.get(path);
  if (known !== undefined) return known;
  if (!existsSync(path)) throw new AppError('SIGNER_MODULE_UNUSABLE', { module: path, problem: 'it does not exist' });
  const functions = new Functions();
  const module = new Pkcs11Module(functions);
  try {
    functions.load(path);
    module.initialize();
  } catch (cause) {
    if (!isLost(cause)) {
      const name = nameOf(cause);
      const problem = name.startsWith('CKR_') ? `it reported ${name}` : 'it is no PKCS #11 library for this system';
      throw new AppError('SIGNER_MODULE_UNUSABLE', { module: path, problem }, { cause });
    }
  }
  modules.set(path, module);
  return module;
}

/** A vendor's library, and its state in this process. */
export class Pkcs11Module {
  readonly functions: PKCS11;
  readonly #calls = new Semaphore(MAX_CALLS);
  #generation = 0;

  constructor(functions: PKCS11) {
    this.functions = functions;
  }

  /** Changes when the module was initialized again: sessions of before are gone, and their handles may be those of others. */
  get generation(): number {
    return this.#generation;
  }

  /** Runs a task that calls the module, beside others. It holds its permit until the module returns, whoever still waits for it. */
  run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#calls.run(task, 1, signal);
  }

  /**
   * Initializes the module again when no call runs, unless that was done since a generation: many find devices that were away in no
   * other way.
   */
  restart(generation: number, signal: AbortSignal): Promise<void> {
    const restart = async () => {
      if (generation !== this.#generation) return;
      this.#generation += 1;
      try {
        this.functions.C_Finalize();
      } catch {
        // It was not initialized.
      }
      this.initialize();
    };
    return this.#calls.run(restart, MAX_CALLS, signal);
  }

  /** Without the flag, modules take it that one thread alone calls them. */
  initialize(): void {
    this.functions.C_Initialize({ flags: CKF_OS_LOCKING_OK });
  }
}

async function loadPackage(): Promise<typeof import('pkcs11js')> {
  try {
    return (await import('pkcs11js')).default;
  } catch (cause) {
    throw new AppError('PKCS11JS_NOT_BUILT', {}, { cause });
  }
}
