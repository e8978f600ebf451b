import { X509Certificate } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { signerChainOf } from './trust/signer-chain.ts';

/** Where trust lists are: PEM files, or folders of them. */
export interface TrustSettings {
  /** Anchors of signers. */
  readonly anchors: readonly string[];
  /** Anchors of time-stamp authorities. */
  readonly tsaAnchors: readonly string[];
}

/** The trust lists of a deployment. */
export interface TrustLists {
  /** The lists of signers and of time-stamp authorities. */
  readonly signers: readonly NamedList[];
  readonly authorities: readonly NamedList[];
  /** All certificates in PEM, for the readers; null where there are none. */
  readonly pem: string | null;
  /** Those of signers. */
  readonly signersPem: string | null;
  /** Returns the name of the list that has an anchor of the signer of a store's active manifest; null for none. */
  listOfSigner(store: Uint8Array): string | null;
}

/** A list by the name of its file, and its certificates in PEM. */
interface NamedList {
  readonly name: string;
  readonly pem: string;
}

interface TrustList extends NamedList {
  readonly anchors: readonly X509Certificate[];
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const PEM_NAME = /\.(?:pem|crt|cer)$/i;
/** Size limit of a list; that of C2PA has 60 kB. */
const MAX_LIST_BYTES = 16 * 1024 * 1024;

/** Reads the trust lists as they are now. Throws `TRUST_LIST_UNUSABLE` for a file that cannot be read or holds no certificate. */
export async function loadTrustLists({ anchors, tsaAnchors }: TrustSettings): Promise<TrustLists> {
  const signers = (await Promise.all(anchors.map(listsAt))).flat();
  const authorities = (await Promise.all(tsaAnchors.map(listsAt))).flat();
  return {
    signers,
    authorities,
    pem: pemOf([...signers, ...authorities]),
    signersPem: pemOf(signers),
    listOfSigner: (store) => listOf(signerChainOf(store), signers),
  };
}

function pemOf(lists: readonly TrustList[]): string | null {
  return lists.length === 0 ? null : lists.map(({ pem }) => pem).join('\n');
}

async function listsAt(path: string): Promise<TrustList[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [await readList(path)];
    const names = (await readdir(path)).filter((name) => PEM_NAME.test(name)).sort();
    return await Promise.all(names.map((name) => readList(join(path, name))));
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new AppError('TRUST_LIST_UNUSABLE', { path, problem }, { cause });
  }
}

async function readList(path: string): Promise<TrustList> {
  if ((await stat(path)).size > MAX_LIST_BYTES) throw new Error(`"${path}" has more than ${MAX_LIST_BYTES} bytes`);
  const certificates = (await readFile(path, 'latin1')).match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw new Error(`"${path}" holds no certificate in PEM`);
  return {
    name: basename(path).replace(PEM_NAME, ''),
    pem: certificates.join('\n'),
    anchors: certificates.map((certificate) => new X509Certificate(certificate)),
  };
}

/** Whether the chain is in order is the reader's to find: here only the anchor is looked for. */
function listOf(chain: readonly X509Certificate[], lists: readonly TrustList[]): string | null {
  const isAnchored = (anchor: X509Certificate): boolean =>
    chain.some(
      (certificate) =>
        certificate.raw.equals(anchor.raw) || (certificate.checkIssued(anchor) && certificate.verify(anchor.publicKey)),
    );
  return lists.find(({ anchors }) => anchors.some(isAnchored))?.name ?? null;
}
