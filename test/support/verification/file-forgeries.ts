import assert from 'node:assert/strict';
import * as cborg from 'cborg';
import { itemAt } from '#errors/assert.ts';
import { formatOf } from '#formats/formats.ts';
import { superbox, typedSuperbox } from '../../provenance/manifest-store-bytes.ts';
import { memorySource } from '../memory-bytes.ts';
import type { SeededRandom } from '../seeded-random.ts';

// Makes forgeries of signed files without any key, independently of the code under test: every byte that a hash covers
// stays as it is, and the file keeps its length.

/** COSE_Sign1 (RFC 9052 §4.2). Keeps the tag while a signature is taken apart. */
class Sign1 {
  readonly parts: [Uint8Array, Map<unknown, unknown>, unknown, Uint8Array];

  constructor(parts: Sign1['parts']) {
    this.parts = parts;
  }
}

interface Superbox {
  readonly type: string;
  readonly content: Buffer;
}

function boxesIn(bytes: Buffer): Superbox[] {
  const boxes: Superbox[] = [];
  for (let at = 0; at + 8 <= bytes.length; at += bytes.readUInt32BE(at)) {
    const end = at + bytes.readUInt32BE(at);
    boxes.push({ type: bytes.toString('latin1', at + 4, at + 8), content: bytes.subarray(at + 8, end) });
  }
  return boxes;
}

export function boxOf(type: string, content: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + content.length);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, content]);
}

/** Returns a store with the headers of its signature changed that nobody signs; other bytes stay as they are. */
export function withHeaders(store: Buffer, change: (headers: Map<unknown, unknown>) => void): Buffer {
  const rewritten = (bytes: Buffer, inSignature: boolean): Buffer =>
    Buffer.concat(
      boxesIn(bytes).map(({ type, content }) => {
        if (type === 'jumb') {
          return boxOf(type, rewritten(content, inSignature || content.includes('c2pa.signature\0', 0, 'latin1')));
        }
        return boxOf(type, type === 'cbor' && inSignature ? resealed(content, change) : content);
      }),
    );
  return rewritten(store, false);
}

/** Returns a store with the padding of its signature replaced. */
function withPadding(store: Buffer, pad: (before: Uint8Array) => Uint8Array): Buffer {
  return withHeaders(store, (headers) => headers.set('pad', pad(headers.get('pad') as Uint8Array)));
}

function resealed(signature: Buffer, change: (headers: Map<unknown, unknown>) => void): Buffer {
  if (signature[0] !== 0xd2) return signature;
  const [sign1, ...rest] = [
    cborg.decode(signature, {
      useMaps: true,
      tags: { 18: (decode: () => unknown) => new Sign1(decode() as Sign1['parts']) },
    }),
  ] as [Sign1];
  assert.equal(rest.length, 0);
  const [protectedHeader, header, payload, value] = sign1.parts;
  change(header);
  const entries = [...header].map(([key, entry]) => Buffer.concat([cborg.encode(key), cborg.encode(entry)]));
  return Buffer.concat([
    Buffer.from([0xd2, 0x84]),
    cborg.encode(protectedHeader),
    Buffer.from([0xa0 + header.size]),
    ...entries,
    cborg.encode(payload),
    cborg.encode(value),
  ]);
}

/** Returns the same manifest store with `bytes` bytes less of padding. */
export function shortened(store: Buffer, bytes: number): Buffer {
  const short = withPadding(store, (before) => before.subarray(0, before.length - bytes));
  const missing = store.length - bytes - short.length;
  // The length of the padding takes fewer bytes where it crosses a power of two.
  return missing === 0 ? short : withPadding(store, (before) => before.subarray(0, before.length - bytes + missing));
}

/** A signed file, taken apart. */
export interface SignedFile {
  readonly bytes: Buffer;
  readonly container: 'riff' | 'id3' | 'isobmff';
  /** Bytes that its hash leaves out for its manifest. */
  readonly start: number;
  readonly end: number;
  readonly store: Buffer;
}

const HEADER_BYTES = { riff: 8, id3: 0, isobmff: 8 + 16 + 4 + 'manifest\0'.length + 8 } as const;

export async function takeApart(bytes: Buffer): Promise<SignedFile> {
  const format = formatOf(bytes);
  assert(format !== undefined);
  const layout = await format.readLayout(memorySource(bytes), new AbortController().signal);
  assert(layout.manifest !== null);
  const { offset, length } = layout.manifest;
  const container = format.name as SignedFile['container'];
  const store = bytes.subarray(offset, offset + length);
  return { bytes, container, start: offset - HEADER_BYTES[container], end: offset + length, store };
}

/** Returns the file with what its hash leaves out for its manifest filled with parts and zeros. */
export function filled({ bytes, start, end }: SignedFile, ...parts: readonly Uint8Array[]): Buffer {
  const whole = Buffer.concat(parts);
  // The pad byte of a chunk stands behind what the hash leaves out.
  const content = whole.length === end - start + 1 ? whole.subarray(0, -1) : whole;
  assert(content.length <= end - start, `${content.length} bytes do not fit into ${end - start}`);
  return Buffer.concat([
    bytes.subarray(0, start),
    content,
    Buffer.alloc(end - start - content.length),
    bytes.subarray(end),
  ]);
}

export function riffChunk(id: string, data: Uint8Array): Buffer {
  const header = Buffer.from(`${id}\0\0\0\0`, 'latin1');
  header.writeUInt32LE(data.length, 4);
  return Buffer.concat([header, data, Buffer.alloc(data.length % 2)]);
}

const C2PA_ID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');

export function c2paBox(purpose: string, content: Uint8Array, offset = Buffer.alloc(8)): Buffer {
  return boxOf('uuid', Buffer.concat([C2PA_ID, Buffer.alloc(4), Buffer.from(`${purpose}\0`), offset, content]));
}

/** Returns the element of a container around a manifest store, as it stands in what the hash leaves out. */
export function elementOf({ container }: SignedFile, content: Uint8Array, purpose = 'manifest'): Buffer {
  if (container === 'riff') return riffChunk('C2PA', content);
  return container === 'isobmff' ? c2paBox(purpose, content) : Buffer.from(content);
}

/** A forgery, and how it was made. */
export interface Forgery {
  readonly bytes: Buffer;
  readonly change: string;
}

type Maker = (file: SignedFile, media: Buffer, roomBytes: number) => Buffer;

/** Cuts or extends media to a room; in RIFF, to the next smaller even number of bytes. */
function cut({ container }: SignedFile, media: Buffer, roomBytes: number): Buffer {
  const bytes = Math.max(container === 'riff' ? roomBytes - (roomBytes % 2) : roomBytes, 0);
  return Buffer.concat([media, Buffer.alloc(Math.max(bytes - media.length, 0))]).subarray(0, bytes);
}

const spare = ({ start, end }: SignedFile, ...parts: readonly Buffer[]): number =>
  end - start - parts.reduce((sum, { length }) => sum + length, 0);

/** Fills the room beside a shortened manifest with an element that media is in. */
function beside(of: (media: Buffer) => Buffer, isBefore: boolean): Maker {
  return (file, media, roomBytes) => {
    const own = elementOf(file, shortened(file.store, roomBytes));
    const room = spare(file, own);
    const other = of(cut(file, media, room - of(Buffer.alloc(0)).length));
    return isBefore ? filled(file, other, own) : filled(file, own, other);
  };
}

/** Fills the room behind a shortened manifest, in its own element. */
const inside: Maker = (file, media, roomBytes) => {
  const store = shortened(file.store, roomBytes);
  const content = Buffer.concat([store, cut(file, media, file.store.length - store.length)]);
  return filled(file, elementOf(file, content));
};

/** Fills the padding of the signature. */
const inPadding: Maker = (file, media) => {
  const store = withPadding(file.store, (before) => {
    const pad = Buffer.from(before);
    media.copy(pad, 0, 0, Math.min(media.length, pad.length));
    return pad;
  });
  return filled(file, elementOf(file, store));
};

/** Fills another header of the signature, and shortens the padding for it. */
const inHeader: Maker = (file, media, roomBytes) => {
  const shorter = shortened(file.store, roomBytes);
  const store = withHeaders(shorter, (headers) => headers.set('note', cut(file, media, roomBytes - 16)));
  return filled(file, elementOf(file, Buffer.concat([store, Buffer.alloc(file.store.length - store.length)])));
};

/** The bit of a description box that says that a private box follows (ISO/IEC 19566-5, table A.1). */
const HAS_PRIVATE_BOX = 0x10;
const TOGGLES_OFFSET = 8 + 16;

function withPrivateBox(media: Buffer, description: Buffer): Buffer {
  const own = Buffer.from(description);
  own.writeUInt8(own.readUInt8(TOGGLES_OFFSET) | HAS_PRIVATE_BOX, TOGGLES_OFFSET);
  return boxOf('jumd', Buffer.concat([own.subarray(8), boxOf('free', media)]));
}

/** Puts boxes in front of the manifest in its store, and shortens the padding for them. */
const inStore =
  (boxesOf: (media: Buffer) => readonly Buffer[], descriptionOf = (_media: Buffer, own: Buffer) => own): Maker =>
  (file, media, roomBytes) => {
    const { content } = itemAt(boxesIn(shortened(file.store, roomBytes)), 0);
    const [description, ...manifests] = boxesIn(content).map(({ type, content: bytes }) => boxOf(type, bytes));
    const part = cut(file, media, roomBytes - 100);
    const store = boxOf(
      'jumb',
      Buffer.concat([descriptionOf(part, description as Buffer), ...boxesOf(part), ...manifests]),
    );
    return filled(file, elementOf(file, Buffer.concat([store, Buffer.alloc(file.store.length - store.length)])));
  };

/** Puts boxes into the manifest, behind or before its own, and shortens the padding for them. */
const inManifest =
  (boxesOf: (media: Buffer) => readonly Buffer[], isBefore = false): Maker =>
  (file, media, wanted) => {
    // The boxes themselves take some 100 bytes.
    const roomBytes = Math.max(wanted, 200);
    const { content } = itemAt(boxesIn(shortened(file.store, roomBytes)), 0);
    const boxes = boxesIn(content).map(({ type, content: bytes }) => boxOf(type, bytes));
    const active = itemAt(boxesIn(itemAt(boxes, boxes.length - 1)), 0);
    const [description, ...parts] = boxesIn(active.content).map(({ type, content: bytes }) => boxOf(type, bytes));
    const added = boxesOf(cut(file, media, roomBytes - 120));
    const all = isBefore ? [...added, ...parts] : [...parts, ...added];
    const manifest = boxOf('jumb', Buffer.concat([description as Buffer, ...all]));
    const store = boxOf('jumb', Buffer.concat([...boxes.slice(0, -1), manifest]));
    return filled(file, elementOf(file, Buffer.concat([store, Buffer.alloc(file.store.length - store.length)])));
  };

/** Puts another manifest of the same label into the element, whose only assertion is media. */
export function withOtherManifest(file: SignedFile, media: Buffer): Buffer {
  const boxes = boxesIn(itemAt(boxesIn(file.store), 0).content).map(({ type, content: bytes }) => boxOf(type, bytes));
  const manifest = itemAt(boxesIn(itemAt(boxes, boxes.length - 1)), 0);
  const [description] = boxesIn(manifest.content).map(({ type, content: bytes }) => boxOf(type, bytes));
  const parts = [
    typedSuperbox('c2as', 'c2pa.assertions', superbox('x', boxOf('free', cut(file, media, file.store.length - 1000)))),
    ...[superbox('c2pa.claim.v2'), superbox('c2pa.signature')],
  ];
  const other = boxOf('jumb', Buffer.concat([description as Buffer, ...parts]));
  const store = boxOf('jumb', Buffer.concat([itemAt(boxes, 0), other]));
  return filled(file, elementOf(file, Buffer.concat([store, Buffer.alloc(file.store.length - store.length)])));
}

/** Ways of adding parts to a manifest that readers pass over, because they find their own by type or by label. */
const manifestParts: Readonly<Record<string, Maker>> = {
  'in a box with the label of a claim': inManifest((media) => [
    typedSuperbox('abcd', 'c2pa.claim.v3', boxOf('free', media)),
  ]),
  'in a box with the label of assertions': inManifest((media) => [
    typedSuperbox('abcd', 'c2pa.assertions', boxOf('free', media)),
  ]),
  'in a list of assertions before': inManifest(
    (media) => [typedSuperbox('c2as', 'c2pa.assertions', superbox('a', boxOf('free', media)))],
    true,
  ),
  'in a data box list with the label of assertions': inManifest((media) => [
    typedSuperbox('c2db', 'c2pa.assertions', boxOf('free', media)),
  ]),
};

/** Places a second element with the same manifest before or behind it. */
const twice =
  (isBefore: boolean): Maker =>
  (file, media, roomBytes) => {
    const own = elementOf(file, shortened(file.store, roomBytes));
    const decoy = elementOf(file, cut(file, media, spare(file, own) - elementOf(file, Buffer.alloc(0)).length));
    return isBefore ? filled(file, decoy, own) : filled(file, own, decoy);
  };

const riffPlaces: Readonly<Record<string, Maker>> = Object.fromEntries(
  ['data', 'LIST', 'fmt ', 'idx1', 'JUNK', 'fact', 'id3 '].flatMap((id) => [
    [`${id} chunk behind`, beside((media) => riffChunk(id, media), false)],
    [`${id} chunk before`, beside((media) => riffChunk(id, media), true)],
  ]),
);

/** Appends bytes to a file. */
const appended =
  (of: (media: Buffer) => Buffer): Maker =>
  ({ bytes }, media) =>
    Buffer.concat([bytes, of(media)]);

const bmffPlaces: Readonly<Record<string, Maker>> = {
  'C2PA box of another purpose behind': beside((media) => c2paBox('other', media), false),
  'C2PA box of another purpose before': beside((media) => c2paBox('other', media), true),
  'Merkle box behind': beside((media) => c2paBox('merkle', media), false),
  'original box behind': beside((media) => c2paBox('original', media), false),
  'mdat box behind': beside((media) => boxOf('mdat', media), false),
  'free box behind': beside((media) => boxOf('free', media), false),
  'mfra box behind': beside((media) => boxOf('mfra', media), false),
  'ftyp box behind': beside((media) => boxOf('ftyp', media), false),
  'C2PA box at the end': appended((media) => c2paBox('other', media)),
  'unknown purpose': (file) => filled(file, elementOf(file, file.store, 'manifesu')),
  'purpose of an original': (file) => filled(file, elementOf(file, file.store, 'original')),
  'purpose of an update': (file) =>
    filled(file, c2paBox('update', file.store, Buffer.alloc('manifest'.length - 'update'.length + 8))),
  'purpose of a Merkle box': (file) =>
    filled(file, c2paBox('merkle', file.store, Buffer.alloc('manifest'.length - 'merkle'.length + 8))),
};

/** Ways of filling what a hash leaves out, by container. */
export const PLACES: Readonly<Record<SignedFile['container'], Readonly<Record<string, Maker>>>> = {
  riff: {
    inside,
    'in the padding': inPadding,
    'in another header': inHeader,
    'zeros behind': (file) => filled(file, elementOf(file, shortened(file.store, 4))),
    'in another manifest': inStore((media) => [superbox('urn:c2pa:other', boxOf('free', media))]),
    ...manifestParts,
    'in the description of the store': inStore(() => [], withPrivateBox),
    'decoy before': twice(true),
    'decoy behind': twice(false),
    ...riffPlaces,
  },
  id3: { inside, 'in the padding': inPadding, 'in another header': inHeader, ...manifestParts },
  isobmff: {
    inside,
    'in the padding': inPadding,
    'in another header': inHeader,
    ...manifestParts,
    'decoy before': twice(true),
    'decoy behind': twice(false),
    ...bmffPlaces,
  },
};

/** Returns a forgery of a random kind; `media` is what it places where the hash does not look. */
export function randomForgery(file: SignedFile, media: Buffer, random: SeededRandom): Forgery {
  const places = PLACES[file.container];
  const roomBytes = random.between(24, Math.floor(file.store.length / 2));
  if (random.chance(0.2)) {
    const at = random.between(file.start, file.end - 1);
    const bytes = Buffer.from(file.bytes);
    bytes.writeUInt8((bytes[at] as number) ^ random.between(1, 255), at);
    return { bytes, change: `byte ${at} changed` };
  }
  const place = random.pick(Object.keys(places));
  const from = random.between(0, Math.max(media.length - roomBytes, 0));
  const bytes = (places[place] as Maker)(file, media.subarray(from), roomBytes);
  return { bytes, change: `${place}, ${roomBytes} bytes from ${from}` };
}
