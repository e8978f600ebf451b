import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { readStoreGraph } from './chain-limits.ts';
import { type JumbfBox, onlyChild } from './jumbf.ts';
import { signatureIn } from './signature-headers.ts';

// A signature covers a part of its headers. Anybody can write into the others, which readers take as they are.

/** The headers by which a signature gets the size that was planned for it. */
const PADDING_HEADER = /^pad\d*$/;
/** Size of all headers that a signature does not cover, without padding. Time-stamps have some 6 kB each. */
const MAX_HEADERS_BYTES = 64 * 1024;
/** Time-stamps, certificates or statuses of certificates in one header. */
const MAX_ITEMS = 8;

/** Length of a time as text. */
const MAX_TIME_LENGTH = 40;

const der = z.instanceof(Uint8Array).refine(isDer);
const items = z.array(der).min(1).max(MAX_ITEMS);
const certificate = z.instanceof(Uint8Array).refine(isCertificate);
const timeStamps = z.strictObject({
  tstTokens: z
    .array(z.strictObject({ val: der }))
    .min(1)
    .max(MAX_ITEMS),
});
const certificates = z.union([certificate, z.array(certificate).min(1).max(MAX_ITEMS)]);

/**
 * Lists what headers hold that signatures do not cover (C2PA 2.2 §13.2, §10.3.2.5, §14.6): time-stamps, statuses of certificates, and in
 * versions before 2.0 the certificates (RFC 9360), by their name or number.
 */
const CONTENTS: ReadonlyMap<unknown, z.ZodType> = new Map<unknown, z.ZodType>([
  ['sigTst', timeStamps],
  ['sigTst2', timeStamps],
  ['rVals', z.strictObject({ ocspVals: items })],
  // The time at which early releases of the SDK signed without a time-stamp.
  ['temp_signing_time', z.iso.datetime({ offset: true }).max(MAX_TIME_LENGTH)],
  ['x5chain', certificates],
  [33, certificates],
]);

/** Returns true where a manifest has a readable signature, and this no headers that it does not cover but known ones and zeros. */
export function hasKnownHeaders(manifest: JumbfBox | undefined): boolean {
  try {
    const { unsigned } = signatureIn(manifest);
    let sizeBytes = 0;
    for (const [name, content] of unsigned) {
      if (typeof name === 'string' && PADDING_HEADER.test(name)) {
        if (!(content instanceof Uint8Array && content.every((byte) => byte === 0))) return false;
        continue;
      }
      if (CONTENTS.get(name)?.safeParse(plain(content)).success !== true) return false;
      sizeBytes += bytesIn(content);
    }
    return sizeBytes <= MAX_HEADERS_BYTES;
  } catch {
    // Readers that accept it find the signature in another way.
    return false;
  }
}

/** Returns maps as objects. */
function plain(content: unknown): unknown {
  if (Array.isArray(content)) return content.map(plain);
  if (!(content instanceof Map)) return content;
  return Object.fromEntries([...content].map(([key, value]) => [String(key), plain(value)]));
}

function bytesIn(content: unknown): number {
  if (content instanceof Uint8Array) return content.length;
  const parts = content instanceof Map ? [...content.values()] : Array.isArray(content) ? content : [];
  return parts.reduce((sum: number, part) => sum + bytesIn(part), 0);
}

/** Tells whether bytes are one sequence in DER (X.690 §8.1), which ends where they do. */
function isDer(bytes: Uint8Array): boolean {
  const [tag, first = 0] = bytes;
  const start = first < 0x80 ? 2 : 2 + (first & 0x7f);
  const length = first < 0x80 ? first : bytes.subarray(2, start).reduce((sum, byte) => sum * 256 + byte, 0);
  return tag === 0x30 && first !== 0x80 && first <= 0x84 && bytes.length === start + length;
}

function isCertificate(bytes: Uint8Array): boolean {
  try {
    return new X509Certificate(bytes).raw.equals(bytes);
  } catch {
    return false;
  }
}

/** Types of the boxes of a manifest that its signature covers: the claim, and the assertions by their hashes in it. */
const SIGNED_TYPES = ['c2cl', 'c2as'];

/**
 * Returns the parts of a manifest store that no signature covers, into which anybody can put anything where readers accept
 * the store: manifests that the active one does not lead to, headers that a signature leaves out, and boxes beside those
 * of a manifest. `label` is that of the active manifest, by default the last one.
 */
export function unsignedParts(store: JumbfBox, label = store.children.at(-1)?.label): Uint8Array[] {
  const reached = labelsReachedFrom(label, store);
  const ofManifests = store.children.flatMap((manifest) => {
    const isReached = reached.has(manifest.label) && onlyChild(store, manifest.label) !== undefined;
    return isReached ? unsignedIn(manifest) : [manifest.whole];
  });
  return [...looseIn(store), ...ofManifests];
}

function labelsReachedFrom(active: string | undefined, store: JumbfBox): Set<string> {
  const reached = new Set(active === undefined ? [] : [active]);
  try {
    const { manifests } = readStoreGraph(store.whole);
    // Labels that are added meanwhile are visited as well.
    for (const label of reached) for (const other of manifests.get(label)?.ingredients ?? []) reached.add(other);
  } catch {
    // No more is known to be reached.
  }
  return reached;
}

function unsignedIn(manifest: JumbfBox): Uint8Array[] {
  // The signature stands among them with all its headers.
  const others = manifest.children.filter(({ type }) => !SIGNED_TYPES.includes(type));
  return [...looseIn(manifest), ...others.map(({ whole }) => whole)];
}

/** Returns what a superbox holds beside other superboxes. */
function looseIn({ details, contents }: JumbfBox): Uint8Array[] {
  return [details, ...contents.map(({ bytes }) => bytes)];
}
