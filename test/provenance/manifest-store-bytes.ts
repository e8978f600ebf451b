import { randomUUID } from 'node:crypto';
import * as cborg from 'cborg';
import { zeroSignature } from '#provenance/authoring/sign-manifest.ts';
import { activeManifestOf, signManifest } from '#provenance/sdk/sdk.ts';
import { defaultIdentity } from '../support/manifests/test-identity.ts';

const never = new AbortController().signal;
const signature = zeroSignature(defaultIdentity.signer);

export type Relationship = 'parentOf' | 'componentOf';

/** A manifest store signed by the SDK, whose ingredients are all the same store; nothing is validated for it. */
export async function storeOver(store: Uint8Array | null, ...relationships: readonly Relationship[]): Promise<Buffer> {
  const active = store === null ? null : await activeManifestOf(store, never);
  return await storeOverActive(store, active, relationships);
}

/**
 * A manifest store signed by the SDK, of manifests in a row. Their labels are given, so that none is read to find them; each
 * is signed over the one before alone, because the SDK would copy a whole row again for each.
 */
export async function chainOf(count: number): Promise<Buffer> {
  const labels = Array.from({ length: count }, () => `urn:c2pa:${randomUUID()}`);
  const row: Buffer[] = [];
  for (const [index, label] of labels.entries()) {
    const before = row.length === 0 ? null : box('jumb', ...row.slice(0, 1), ...row.slice(-1));
    const store = await storeOverActive(before, labels[index - 1] ?? null, index === 0 ? [] : ['parentOf'], label);
    const [description, ...manifests] = boxesIn(store) as [Buffer, ...Buffer[]];
    row.push(...(row.length === 0 ? [description] : []), ...manifests.slice(-1));
  }
  return box('jumb', ...row);
}

/** The boxes of a superbox, the first of which describes it. */
function boxesIn(superbox: Buffer): Buffer[] {
  const boxes: Buffer[] = [];
  for (let at = 8; at < superbox.length; at += superbox.readUInt32BE(at)) {
    boxes.push(superbox.subarray(at, at + superbox.readUInt32BE(at)));
  }
  return boxes;
}

async function storeOverActive(
  store: Uint8Array | null,
  active: string | null,
  relationships: readonly Relationship[],
  label?: string,
): Promise<Buffer> {
  const ingredients = relationships.map((relationship) => ({
    title: 'earlier.wav',
    format: 'audio/wav',
    relationship,
    active_manifest: active,
    validation_results: { activeManifest: { success: [], informational: [], failure: [] } },
    manifest_data: { format: 'application/c2pa', identifier: 'earlier.c2pa' },
  }));
  const data = { exclusions: [], name: 'none', alg: 'sha256', hash: new Array<number>(32).fill(0), pad: [] };
  const json = {
    ...(label !== undefined && { label }),
    claim_version: 2,
    claim_generator_info: [{ name: 'test', version: '0' }],
    ingredients,
    assertions: [{ label: 'c2pa.hash.data', data }],
  };
  const resources = new Map(store === null ? [] : [['earlier.c2pa', store] as const]);
  return await signManifest({ json, createdLabels: [], resources }, signature, never);
}

/** A manifest store by hand: what each manifest leads to, by label. The last one is active. */
export function storeByHand(manifests: Readonly<Record<string, readonly string[]>>, assertionCount = 0): Buffer {
  return superbox(
    'c2pa',
    ...Object.entries(manifests).map(([label, leadsTo]) => manifest(label, leadsTo, assertionCount)),
  );
}

function manifest(label: string, leadsTo: readonly string[], assertionCount: number): Buffer {
  const ingredients = leadsTo.map((ingredient, index) => {
    const url = `self#jumbf=/c2pa/${ingredient}`;
    return superbox(`c2pa.ingredient.v3__${index}`, box('cbor', cborg.encode({ activeManifest: { url } })));
  });
  const others = Array.from({ length: assertionCount }, (_, index) => superbox(`com.example.a${index}`));
  return manifestOf(label, ...ingredients, ...others);
}

/** A manifest with the parts that each has, of which only the assertions hold anything. */
export function manifestOf(label: string, ...assertions: readonly Uint8Array[]): Buffer {
  const parts = [superbox('c2pa.assertions', ...assertions), superbox('c2pa.claim.v2'), superbox('c2pa.signature')];
  return typedSuperbox('c2ma', label, ...parts);
}

/** The content types of superboxes by their label; assertions are of CBOR. */
const TYPES: Readonly<Record<string, string>> = {
  c2pa: 'c2pa',
  'c2pa.assertions': 'c2as',
  'c2pa.claim.v2': 'c2cl',
  'c2pa.signature': 'c2cs',
};

export function superbox(label: string, ...contents: readonly Uint8Array[]): Buffer {
  return typedSuperbox(TYPES[label] ?? 'cbor', label, ...contents);
}

export function typedSuperbox(type: string, label: string, ...contents: readonly Uint8Array[]): Buffer {
  const contentType = Buffer.concat([Buffer.from(type, 'latin1'), Buffer.from('00110010800000aa00389b71', 'hex')]);
  const description = box('jumd', contentType, Buffer.from([3]), Buffer.from(`${label}\0`));
  return box('jumb', description, ...contents);
}

export function box(type: string, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const header = Buffer.alloc(8);
  header.writeUInt32BE(content.length + 8);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, content]);
}
