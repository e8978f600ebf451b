import { readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { WasmReader } from '@contentauth/c2pa-wasm';
import { vendorFile } from '#config/vendor-files.ts';
import { EXTENDED_KEY_USAGE } from '../identity/certificate-profile.ts';
import type { TrustListData } from '../trust-lists.ts';

/** The settings of every call: nothing that a file names is ever fetched. */
const VERIFY = { remote_manifest_fetch: false, ocsp_fetch: false };
/** Leaves identity assertions alone: they say nothing of the manifest, and those of aggregators have the reader ask their issuers. */
const CORE = { decode_identity_assertions: false };

/**
 * The extended key usages of signers (C2PA 2.2 §14.4.1). Left to itself, this build knows fewer than the native one,
 * and calls manifests invalid whose signer has a certificate for signing documents or claims only.
 */
const SIGNER_USAGES = [
  EXTENDED_KEY_USAGE.emailProtection,
  EXTENDED_KEY_USAGE.documentSigning,
  EXTENDED_KEY_USAGE.timeStamping,
  EXTENDED_KEY_USAGE.ocspSigning,
  EXTENDED_KEY_USAGE.c2paClaimSigning,
  EXTENDED_KEY_USAGE.microsoftC2paSigning,
].join('\n');

/** Returns the settings for media of any origin, with trust anchors in PEM where there are any. */
export function readerSettings(anchors: string | null): string {
  const trust = { trust_config: SIGNER_USAGES, ...(anchors !== null && { trust_anchors: anchors }) };
  return JSON.stringify({ verify: VERIFY, core: CORE, trust });
}

/** The lists of publishers. */
export type PublisherLists = Pick<TrustListData, 'publishers' | 'allowed'>;

/**
 * Returns the settings for reading identity assertions, with no address that may be asked. This build takes any of the anchors
 * for those of signers too, so nothing but what it says of identity assertions counts.
 */
export function identitySettings({ publishers, allowed }: PublisherLists): string {
  const lists = [
    ...publishers.map(({ name, pem }) => ({ trust_uri: name, trust_anchors: pem })),
    ...allowed.map(({ name, pem }) => ({ trust_uri: name, trust_anchors: '', allowed_list: pem })),
  ];
  return JSON.stringify({
    verify: VERIFY,
    core: { allowed_network_hosts: [] },
    trust: { anchors: lists.map((list) => ({ ...list, trust_kind: 'cawg' })) },
  });
}

/** Lists nobody: with these the reader has the settings of anybody's, which outputs have to satisfy. */
export const NO_PUBLISHERS: PublisherLists = { publishers: [], allowed: [] };

let loading: Promise<typeof WasmReader> | undefined;

/** Returns the official reader in its build for browsers, the only one that reads single fragments. The first call loads it. */
export function wasmReader(): Promise<typeof WasmReader> {
  loading ??= loadWasmReader();
  return loading;
}

async function loadWasmReader(): Promise<typeof WasmReader> {
  // It expects a browser's worker, where blobs can be read synchronously.
  Object.assign(globalThis, { FileReaderSync: BlobReader });
  const module: typeof import('@contentauth/c2pa-wasm') = await import(vendorFile('c2pa.js').href);
  const { default: initialize, WasmReader: Reader } = module;
  await initialize({ module_or_path: await readFile(vendorFile('c2pa_bg.wasm')) });
  return Reader;
}

/** Wraps bytes in memory as the part of a browser's Blob that the reader uses. */
export function blobOf(bytes: Uint8Array): Blob {
  return new ReadableBlob((start, size) => bytes.subarray(start, start + size), 0, bytes.length) as unknown as Blob;
}

/** Wraps an open file as such a Blob: only the pieces that the reader asks for are in memory. */
export function fileBlobOf(descriptor: number, sizeBytes: number): Blob {
  return new ReadableBlob((start, size) => readAt(descriptor, start, size), 0, sizeBytes) as unknown as Blob;
}

/** Reads bytes of a file; fewer where it has become shorter. */
function readAt(descriptor: number, start: number, sizeBytes: number): Uint8Array {
  const buffer = new Uint8Array(sizeBytes);
  let length = 0;
  while (length < sizeBytes) {
    const read = readSync(descriptor, buffer, length, sizeBytes - length, start + length);
    if (read === 0) break;
    length += read;
  }
  return buffer.subarray(0, length);
}

/** Bytes that can be read synchronously, as a browser's worker reads a Blob. */
class ReadableBlob {
  readonly type = '';
  readonly size: number;
  readonly #start: number;
  readonly #read: (start: number, size: number) => Uint8Array;

  constructor(read: (start: number, size: number) => Uint8Array, start: number, size: number) {
    this.#read = read;
    this.#start = start;
    this.size = size;
  }

  slice(start: number | bigint, end: number | bigint): ReadableBlob {
    const from = Math.min(Number(start), this.size);
    return new ReadableBlob(this.#read, this.#start + from, Math.max(Math.min(Number(end), this.size) - from, 0));
  }

  bytes(): Uint8Array {
    return this.#read(this.#start, this.size);
  }
}

/** The part of a browser's FileReaderSync that the reader uses. */
class BlobReader {
  readAsArrayBuffer(blob: ReadableBlob): ArrayBuffer {
    return new Uint8Array(blob.bytes()).buffer;
  }
}
