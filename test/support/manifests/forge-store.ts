import { hash } from 'node:crypto';
import * as cborg from 'cborg';
import type { HashAlgorithm } from '#bytes/splice-plan.ts';
import { type JumbfBox, onlyCbor, onlyChild, parseJumbf } from '#provenance/jumbf.ts';
import { signatureIn } from '#provenance/signature-headers.ts';
import type { Signer } from '#provenance/signer.ts';

/** An assertion as it stands in a manifest: its label with its running number, and its box. */
export interface StoredAssertion {
  readonly label: string;
  readonly box: JumbfBox;
}

/** Returns the assertions of the active manifest of a store. */
export function storedAssertions(store: Uint8Array): StoredAssertion[] {
  const boxes = onlyChild(parseJumbf(Buffer.from(store))?.children.at(-1), 'c2pa.assertions')?.children ?? [];
  return boxes.map((box) => ({ label: box.label, box }));
}

interface Forgery {
  readonly label?: string;
  readonly assertions: readonly StoredAssertion[];
  /** The algorithm that the claim states. */
  readonly algorithm?: HashAlgorithm;
  readonly signer: Signer;
}

/** Returns a store whose active manifest has other assertions or another label, and a new signature. */
export async function forgeStore(
  original: Uint8Array,
  { label, assertions, algorithm, signer }: Forgery,
): Promise<Buffer> {
  const store = parseJumbf(Buffer.from(original)) as JumbfBox;
  const manifest = store.children.at(-1) as JumbfBox;
  const boxes = assertions.map((each) => renamed(each.box, each.label));
  const references = assertions.map((each, index) => ({
    url: `self#jumbf=c2pa.assertions/${each.label}`,
    alg: 'sha256',
    hash: new Uint8Array(hash('sha256', (boxes[index] as Buffer).subarray(8), 'buffer')),
  }));
  const parts: Buffer[] = [];
  let claimBytes = new Uint8Array();
  for (const box of manifest.children) {
    if (box.label === 'c2pa.assertions') parts.push(superbox(descriptionOf(box), boxes));
    else if (box.label.startsWith('c2pa.claim')) {
      const claim = cborg.decode(onlyCbor(box) as Uint8Array) as Record<string, unknown>;
      const replaced: Record<string, unknown> = { ...claim, created_assertions: references };
      delete replaced['gathered_assertions'];
      if (algorithm !== undefined) replaced['alg'] = algorithm;
      if (label !== undefined) replaced['signature'] = `self#jumbf=/c2pa/${label}/c2pa.signature`;
      claimBytes = new Uint8Array(cborg.encode(replaced));
      parts.push(superbox(descriptionOf(box), [boxOf('cbor', claimBytes)]));
    } else if (box.label !== 'c2pa.signature') parts.push(box.whole);
  }
  const { protectedBytes, unsigned } = signatureIn(manifest);
  const signed = cborg.encode(['Signature1', protectedBytes, new Uint8Array(), claimBytes]);
  const value = new Uint8Array(await signer.sign(signed));
  const cose = cborg.encode(new cborg.Tagged(18, [protectedBytes, unsigned, null, value]));
  const signature = onlyChild(manifest, 'c2pa.signature') as JumbfBox;
  parts.push(superbox(descriptionOf(signature), [boxOf('cbor', cose)]));
  const described = describedAs(descriptionOf(manifest), label ?? manifest.label);
  const others = store.children.slice(0, -1).map(({ whole }) => whole);
  return superbox(descriptionOf(store), [...others, superbox(described, parts)]);
}

/** Returns a box as `storedAssertions` does, with other CBOR in it. */
export function withContent(box: JumbfBox, content: Uint8Array): JumbfBox {
  return { ...box, bytes: Buffer.concat([descriptionOf(box), boxOf('cbor', content)]) };
}

function renamed(box: JumbfBox, label: string): Buffer {
  const description = descriptionOf(box);
  return superbox(describedAs(description, label), [Buffer.from(box.bytes.subarray(description.length))]);
}

function descriptionOf({ bytes }: JumbfBox): Buffer {
  const buffer = Buffer.from(bytes);
  return buffer.subarray(0, buffer.readUInt32BE(0));
}

/** Returns a description box with another label, without what stands behind it. */
function describedAs(description: Buffer, label: string): Buffer {
  const [typeAndToggles, end] = [description.subarray(8, 25), description.indexOf(0, 25)];
  return boxOf('jumd', Buffer.concat([typeAndToggles, Buffer.from(label), description.subarray(end)]));
}

function superbox(description: Buffer, contents: readonly Buffer[]): Buffer {
  return boxOf('jumb', Buffer.concat([description, ...contents]));
}

function boxOf(type: string, content: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(content.length + 8);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, content]);
}
