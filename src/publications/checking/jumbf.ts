/** A JUMBF superbox (ISO/IEC 19566-5) and its content; offsets are into the store. */
export interface JumbfBox {
  readonly label: string;
  readonly children: readonly JumbfBox[];
  /** Its content boxes that are no superboxes, such as `cbor`, in order. */
  readonly contents: readonly JumbfContent[];
  /** Everything in it behind its header: what a claim's hash of an assertion is made of (C2PA 2.2, §8.4.2.3). */
  readonly bytes: Uint8Array;
}

/** A content box. */
interface JumbfContent {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** A manifest store needs about six levels; ingredients' manifests stand beside, not inside one another. */
const JUMBF_MAX_DEPTH = 16;
/** Boxes of one store; a chain of a thousand versions has some 20,000. */
const JUMBF_MAX_BOXES = 100_000;
/** Description box: 16 bytes of type, a byte of toggles, then the label. */
const LABEL_OFFSET = 17;

/**
 * Parses the superbox at the start of `bytes`; what follows it is not looked at. Returns undefined where there is none, or
 * where anything in it can be read in more than one way: readers that see different things must not be played off
 * against each other.
 */
export function parseJumbf(bytes: Buffer): JumbfBox | undefined {
  return parseSuperbox(bytes, 0, { boxes: JUMBF_MAX_BOXES });
}

/** `left` is what may yet be found in the whole store. */
function parseSuperbox(bytes: Buffer, depth: number, left: { boxes: number }): JumbfBox | undefined {
  const { value: superbox } = jumbfBoxes(bytes, 1).next();
  if (superbox?.type !== 'jumb' || depth > JUMBF_MAX_DEPTH) return undefined;
  const [description, ...boxes] = jumbfBoxes(superbox.content, left.boxes);
  left.boxes -= boxes.length + 1;
  const sizeBytes = [description, ...boxes].reduce((sum, box) => sum + (box?.whole.length ?? 0), 0);
  if (description?.type !== 'jumd' || sizeBytes !== superbox.content.length) return undefined;
  const children: JumbfBox[] = [];
  const contents: JumbfContent[] = [];
  for (const box of boxes) {
    if (box.type === 'jumd') return undefined;
    if (box.type !== 'jumb') {
      contents.push({ type: box.type, bytes: box.content });
      continue;
    }
    const child = parseSuperbox(box.whole, depth + 1, left);
    if (child === undefined) return undefined;
    children.push(child);
  }
  return { label: readLabel(description.content), children, contents, bytes: superbox.content };
}

/** The one superbox of a label that is directly in another; undefined where there is none, or more than one. */
export function onlyChild(box: JumbfBox | undefined, label: string): JumbfBox | undefined {
  const [child, ...others] = box?.children.filter((each) => each.label === label) ?? [];
  return others.length === 0 ? child : undefined;
}

/** What a superbox of nothing but one CBOR box holds; undefined where it is no such superbox. */
export function onlyCbor(box: JumbfBox | undefined): Uint8Array | undefined {
  const [content, ...others] = box?.contents ?? [];
  return content?.type === 'cbor' && others.length === 0 && box?.children.length === 0 ? content.bytes : undefined;
}

interface RawBox {
  readonly type: string;
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** The boxes in `bytes` as far as they are whole, at most `maxCount`. */
function* jumbfBoxes(bytes: Buffer, maxCount: number): Generator<RawBox, undefined> {
  let at = 0;
  for (let count = 0; count < maxCount && at + 8 <= bytes.length; count += 1) {
    const compact = bytes.readUInt32BE(at);
    const isWide = compact === 1 && at + 16 <= bytes.length;
    const size = isWide ? Number(bytes.readBigUInt64BE(at + 8)) : compact === 0 ? bytes.length - at : compact;
    const header = isWide ? 16 : 8;
    if (size < header || at + size > bytes.length) return;
    yield {
      type: bytes.toString('latin1', at + 4, at + 8),
      whole: bytes.subarray(at, at + size),
      content: bytes.subarray(at + header, at + size),
    };
    at += size;
  }
}

function readLabel(description: Buffer): string {
  const end = description.indexOf(0, LABEL_OFFSET);
  return description.toString('utf8', LABEL_OFFSET, end === -1 ? description.length : end);
}
