import { X509Certificate } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import type { Log } from '#telemetry/logger.ts';
import { FileWatch, stateOfFile } from './file-watch.ts';
import { outsidePem, type PemBlock, pemBlocks } from './identity/pem.ts';
import { type TrustList, TrustLists, type TrustSource } from './trust-lists.ts';

/** The places of trust lists: PEM files, or folders of them. */
export type TrustSettings = Partial<Pick<Config['trust'], (typeof PLACES)[number]>>;

const PLACES = ['anchors', 'tsa_anchors', 'publisher_anchors', 'allowed'] as const;

interface TrustStoreOptions {
  readonly settings: TrustSettings;
  readonly log: Log;
  /** Time between two looks at the files, in milliseconds. */
  readonly pollIntervalMs?: number;
}

const PEM_NAME = /\.(?:pem|crt|cer)$/i;
/** Limits the lists of a folder, and the size of a list; that of C2PA has 60 kB. */
const MAX_LISTS = 256;
const MAX_LIST_BYTES = 16 * 1024 * 1024;
/**
 * The trust lists as their files are. They are read again when files change, are replaced, added or removed (`FileWatch`). After
 * a change that cannot be used the lists stay as they were.
 */
export class TrustStore implements TrustSource {
  readonly #options: Omit<TrustStoreOptions, 'settings'>;
  readonly #listeners: ((lists: TrustLists) => void)[] = [];
  #watch: FileWatch | undefined;
  #current: TrustLists;

  private constructor({ settings, ...options }: TrustStoreOptions, lists: TrustLists, usedState: string) {
    this.#options = options;
    this.#current = lists;
    this.#watch = this.#watchFiles(settings, usedState);
  }

  /** Reads the lists. Throws `TRUST_LIST_UNUSABLE` for a file that cannot be read, or holds anything that is no certificate. */
  static async open(options: TrustStoreOptions): Promise<TrustStore> {
    const state = await stateOf(options.settings);
    const lists = await readLists(options.settings);
    if (hasLists(options.settings)) options.log.info(namesOf(lists), 'trust lists loaded');
    return new TrustStore(options, lists, state);
  }

  get current(): TrustLists {
    return this.#current;
  }

  /** Calls the listener with the lists each time that they have been replaced. */
  onChange(listener: (lists: TrustLists) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#watch?.close();
  }

  /** Reads the lists of other places. Returns a function that puts them into force. Throws as `open` does. */
  async prepare(settings: TrustSettings): Promise<() => void> {
    const usedState = await stateOf(settings);
    const lists = await readLists(settings);
    return () => {
      this.#watch?.close();
      this.#watch = this.#watchFiles(settings, usedState);
      this.#replace(lists);
    };
  }

  #watchFiles(settings: TrustSettings, usedState: string): FileWatch | undefined {
    const { log, pollIntervalMs } = this.#options;
    if (!hasLists(settings)) return undefined;
    return new FileWatch({
      stateOf: () => stateOf(settings),
      usedState,
      reload: async () => {
        this.#replace(await readLists(settings));
        return true;
      },
      refused: (error) => {
        const fields = error instanceof AppError ? { reason: error.reason, ...error.details } : { err: error };
        log.warn(fields, 'changed trust lists cannot be used; the old ones stay');
      },
      maxAttempts: 1,
      pollIntervalMs,
    });
  }

  #replace(lists: TrustLists): void {
    this.#current = lists;
    this.#options.log.info(namesOf(lists), 'trust lists reloaded');
    for (const listener of this.#listeners) listener(lists);
  }
}

function hasLists(settings: TrustSettings): boolean {
  return PLACES.some((place) => (settings[place] ?? []).length > 0);
}

function namesOf({ data: { signers, authorities, publishers, allowed } }: TrustLists): object {
  const names = (lists: readonly TrustList[]): string[] => lists.map(({ name }) => name);
  return {
    anchors: names(signers),
    tsa_anchors: names(authorities),
    publisher_anchors: names(publishers),
    allowed: names(allowed),
  };
}

async function readLists(settings: TrustSettings): Promise<TrustLists> {
  const read = async (key: keyof TrustSettings): Promise<TrustList[]> =>
    (await Promise.all((settings[key] ?? []).map((path) => listsAt(key, path)))).flat();
  return new TrustLists({
    signers: await read('anchors'),
    authorities: await read('tsa_anchors'),
    publishers: await read('publisher_anchors'),
    allowed: await read('allowed'),
  });
}

async function listsAt(key: keyof TrustSettings, path: string): Promise<TrustList[]> {
  const lists: TrustList[] = [];
  let file = path;
  try {
    for (file of await filesAt(path)) lists.push(await readList(file, key === 'allowed'));
  } catch (cause) {
    const problem = isSystemError(cause) ? problemOf(cause) : (cause as Error).message;
    throw new AppError('TRUST_LIST_UNUSABLE', { field: `trust.${key}`, file, problem }, { cause });
  }
  return lists;
}

/** Returns the files of a path: its own, or the PEM files in a folder. */
async function filesAt(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => PEM_NAME.test(name)).sort();
  if (names.length > MAX_LISTS) throw new Error(`it holds ${names.length} PEM files, more than ${MAX_LISTS}`);
  return names.map((name) => join(path, name));
}

/** The SHA-256 of a certificate, in base64, as a line of its own. */
const DIGEST_LINE = /^[A-Za-z0-9+/]{43}=[ \t]*$/gm;

/** Reads a list; one of allowed certificates may hold digests of some, which stand outside the blocks of PEM. */
async function readList(file: string, mayHoldDigests: boolean): Promise<TrustList> {
  const { size } = await stat(file);
  if (size > MAX_LIST_BYTES) throw new Error(`it has ${size} bytes, more than ${MAX_LIST_BYTES}`);
  const text = await readFile(file, 'latin1');
  const blocks = pemBlocks(text);
  const digests = mayHoldDigests ? (outsidePem(text).match(DIGEST_LINE) ?? []) : [];
  if (blocks.length + digests.length === 0) {
    throw new Error('it holds no certificate in PEM ("-----BEGIN CERTIFICATE-----")');
  }
  if (text.split('-----BEGIN ').length - 1 > blocks.length) throw new Error('one of its certificates has no end');
  for (const [index, block] of blocks.entries()) requireCertificate(block, index + 1);
  return {
    name: basename(file).replace(PEM_NAME, ''),
    pem: [...blocks.map(({ pem }) => pem), ...digests.map((line) => `${line.trim()}\n`)].join(''),
  };
}

function requireCertificate({ label, pem }: PemBlock, number: number): void {
  if (label !== 'CERTIFICATE') throw new Error(`block ${number} is no certificate ("-----BEGIN ${label}-----")`);
  try {
    new X509Certificate(pem);
  } catch {
    // OpenSSL's reason says nothing that a person could use.
    throw new Error(`certificate ${number} is damaged`);
  }
}

/** Returns a text that differs when a file was changed, replaced, added or removed. */
async function stateOf(settings: TrustSettings): Promise<string> {
  const states = PLACES.flatMap((place) => settings[place] ?? []).map(async (path) => {
    const files = await filesAt(path).catch(() => [path]);
    return await Promise.all(files.map(stateOfFile));
  });
  return JSON.stringify(await Promise.all(states));
}
