import * as cborg from 'cborg';

/** A JUMBF superbox (ISO/IEC 19566-5). */
export interface JumbfBox {
  /** The name in its content type, such as `c2ma`; empty for a content type of another form. */
  readonly type: string;
  readonly label: string;
  /** The rest of its description box behind the label: an id, a hash, a private box. */
  readonly details: Uint8Array;
  /** The superboxes in it, in order. */
  readonly children: readonly JumbfBox[];
  /** The content boxes in it that are no superboxes, such as `cbor`, in order. */
  readonly contents: readonly JumbfContent[];
  /** All bytes behind its header, which a claim's hash of an assertion covers (C2PA 2.2 §8.4.2.3). */
  readonly bytes: Uint8Array;
  /** The box with its header. */
  readonly whole: Buffer;
}

/** A content box. */
interface JumbfContent {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** A manifest store needs about six levels; manifests of ingredients stand beside, not inside one another. */
const MAX_DEPTH = 16;
/** Boxes that one call parses; a chain of a thousand versions has some 20,000. */
const MAX_BOXES = 100_000;
/** The label in a description box stands behind 16 bytes of type and one of toggles. */
const LABEL_OFFSET = 17;
/** The end of a content type that is made of a name of four characters (ISO/IEC 19566-5 §B.1). */
const TYPE_ENDING = Buffer.from('00110010800000aa00389b71', 'hex');
/** The toggles by which a box can be requested by its label, and has one. */
const LABELLED = 0b11;

/**
 * Parses the superbox at the start of `bytes`; what follows it is ignored. Superboxes `levels` below it get a label and
 * bytes, and are not parsed further. Returns undefined where there is no superbox, where a limit is exceeded, or where
 * anything parsed can be read in more than one way: one reader must not find something else in it than another.
 */
export function parseJumbf(bytes: Uint8Array, levels = Number.POSITIVE_INFINITY): JumbfBox | undefined {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return parseSuperbox(view, 0, { levels, remainingBoxes: MAX_BOXES });
}

interface ParseLimits {
  readonly levels: number;
  remainingBoxes: number;
}

function parseSuperbox(bytes: Buffer, depth: number, limits: ParseLimits): JumbfBox | undefined {
  const { value: superbox } = rawBoxes(bytes, 1).next();
  if (superbox?.type !== 'jumb' || depth > MAX_DEPTH) return undefined;
  const isParsed = depth < limits.levels;
  const [description, ...boxes] = rawBoxes(superbox.content, isParsed ? limits.remainingBoxes : 1);
  limits.remainingBoxes -= boxes.length + 1;
  if (description?.type !== 'jumd') return undefined;
  const common = { ...describedBy(description.content), bytes: superbox.content, whole: superbox.whole };
  if (!isParsed) return { ...common, children: [], contents: [] };
  const sizeBytes = boxes.reduce((sum, { whole }) => sum + whole.length, description.whole.length);
  if (sizeBytes !== superbox.content.length || boxes.some(({ type }) => type === 'jumd')) return undefined;
  const children: JumbfBox[] = [];
  for (const { whole } of boxes.filter(({ type }) => type === 'jumb')) {
    const child = parseSuperbox(whole, depth + 1, limits);
    if (child === undefined) return undefined;
    children.push(child);
  }
  const contents = boxes.filter(({ type }) => type !== 'jumb').map(({ type, content }) => ({ type, bytes: content }));
  return { ...common, children, contents };
}

/** Returns the one superbox of a label directly in another; undefined where there is none, or more than one. */
export function onlyChild(box: JumbfBox | undefined, label: string): JumbfBox | undefined {
  const [child, ...others] = box?.children.filter((each) => each.label === label) ?? [];
  return others.length === 0 ? child : undefined;
}

/** Returns the bytes of the CBOR box that a superbox consists of; undefined where it holds anything else. */
export function onlyCbor(box: JumbfBox | undefined): Uint8Array | undefined {
  const [content, ...others] = box?.contents ?? [];
  return content?.type === 'cbor' && others.length === 0 && box?.children.length === 0 ? content.bytes : undefined;
}

interface RawBox {
  readonly type: string;
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** Yields the boxes in `bytes` up to the first that is cut off, at most `maxCount`. */
function* rawBoxes(bytes: Buffer, maxCount: number): Generator<RawBox, undefined> {
  let offset = 0;
  for (let count = 0; count < maxCount && offset + 8 <= bytes.length; count += 1) {
    const compact = bytes.readUInt32BE(offset);
    const isWide = compact === 1 && offset + 16 <= bytes.length;
    const size = isWide ? Number(bytes.readBigUInt64BE(offset + 8)) : compact === 0 ? bytes.length - offset : compact;
    const header = isWide ? 16 : 8;
    if (size < header || offset + size > bytes.length) return;
    yield {
      type: bytes.toString('latin1', offset + 4, offset + 8),
      whole: bytes.subarray(offset, offset + size),
      content: bytes.subarray(offset + header, offset + size),
    };
    offset += size;
  }
}

function describedBy(description: Buffer): Pick<JumbfBox, 'type' | 'label' | 'details'> {
  const at = description.indexOf(0, LABEL_OFFSET);
  const end = at === -1 ? description.length : at;
  const isNamed = description.subarray(4, 16).equals(TYPE_ENDING);
  const isLabelled = ((description[16] ?? 0) & LABELLED) === LABELLED;
  return {
    type: isNamed ? description.toString('latin1', 0, 4) : '',
    label: isLabelled ? description.toString('utf8', LABEL_OFFSET, end) : '',
    details: description.subarray(end),
  };
}

/** Tags of times and addresses as text, which do not change how the text is read (RFC 8949 §3.4). */
const TRANSPARENT_TAGS = { 0: untagged, 32: untagged };

/** Longer CBOR is not decoded: a binding of 400,000 fragments takes 14 MB, and decoded numbers take eight times their size. */
const MAX_CBOR_BYTES = 16 * 1024 * 1024;

/** Decodes CBOR strictly. Returns undefined where it is malformed, too long, or has a key twice. */
export function decodeCbor(encoded: Uint8Array | undefined): unknown {
  if (encoded === undefined || encoded.length > MAX_CBOR_BYTES) return undefined;
  try {
    return cborg.decode(encoded, { rejectDuplicateMapKeys: true, tags: TRANSPARENT_TAGS });
  } catch {
    // The caller says which file holds no readable CBOR.
    return undefined;
  }
}

function untagged(decode: () => unknown): unknown {
  return decode();
}
