/** A JUMBF superbox (ISO/IEC 19566-5) and its content; offsets are into the store. */
export interface JumbfBox {
  readonly label: string;
  readonly children: readonly JumbfBox[];
  /** The bytes of its content boxes that are no superboxes, by type, such as `cbor`. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/** A manifest store needs about six levels; ingredients' manifests stand beside, not inside one another. */
const JUMBF_MAX_DEPTH = 16;
/** Description box: 16 bytes of type, a byte of toggles, then the label. */
const LABEL_OFFSET = 17;

/** Parses the superbox at the start of `bytes`, or returns undefined where there is no whole one. */
export function parseJumbf(bytes: Buffer, depth = 0): JumbfBox | undefined {
  const [superbox] = jumbfBoxes(bytes);
  if (superbox?.type !== 'jumb' || depth > JUMBF_MAX_DEPTH) return undefined;
  const children: JumbfBox[] = [];
  const contents = new Map<string, Uint8Array>();
  let label = '';
  for (const box of jumbfBoxes(superbox.content)) {
    if (box.type === 'jumd') label = readLabel(box.content);
    else if (box.type !== 'jumb') contents.set(box.type, box.content);
    else {
      const child = parseJumbf(box.whole, depth + 1);
      if (child === undefined) return undefined;
      children.push(child);
    }
  }
  return { label, children, contents };
}

interface RawBox {
  readonly type: string;
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** The boxes in `bytes` as far as they are whole. */
function* jumbfBoxes(bytes: Buffer): Generator<RawBox> {
  let at = 0;
  while (at + 8 <= bytes.length) {
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
