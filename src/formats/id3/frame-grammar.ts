/**
 * What readers of C2PA expect in the frames that they decode (v2.4.0 frames, §4), and whether a frame keeps to it.
 */

/**
 * A part of a frame's content: a text encoding byte; a text in that encoding, or in ISO 8859-1, that ends with zeros;
 * a text, several texts or a URL up to the end of the frame; a count of any bytes. What follows the last part may be
 * anything.
 */
type Part = 'encoding' | 'text' | 'latin1' | 'last text' | 'last texts' | 'last url' | 'picture format' | 1 | 3;

const PARTS_BY_ID: Readonly<Record<string, readonly Part[]>> = {
  TXXX: ['encoding', 'text', 'last text'],
  TXX: ['encoding', 'text', 'last text'],
  WXXX: ['encoding', 'text'],
  WXX: ['encoding', 'text'],
  COMM: ['encoding', 3, 'text', 'last text'],
  COM: ['encoding', 3, 'text', 'last text'],
  USLT: ['encoding', 3, 'text', 'last text'],
  ULT: ['encoding', 3, 'text', 'last text'],
  IPLS: ['encoding', 'last texts'],
  IPL: ['encoding', 'last texts'],
  TMCL: ['encoding', 'last texts'],
  TIPL: ['encoding', 'last texts'],
  GRP1: ['encoding', 'last text'],
  APIC: ['encoding', 'latin1', 1, 'text'],
  PIC: ['encoding', 'picture format', 1, 'text'],
  GEOB: ['encoding', 'latin1', 'text', 'text'],
  GEO: ['encoding', 'latin1', 'text', 'text'],
  POPM: ['latin1', 1],
  POP: ['latin1', 1],
  PRIV: ['latin1'],
  UFID: ['latin1'],
};

/** The content of a frame, or where `isWhole` is false the start of it. */
export interface FrameContent {
  readonly content: Buffer;
  readonly isWhole: boolean;
  /** Since v2.4 a text may hold several values; before, it ends at its first terminator. */
  readonly hasSeveralValues: boolean;
}

/** Whether the content of a frame is what its id says. Frames whose content is not looked at always fit. */
export function fitsGrammar(id: string, { content, isWhole, hasSeveralValues }: FrameContent): boolean {
  if (id === 'SYLT' || id === 'SLT') return isWhole && areSynchronisedLyrics(content);
  let encoding = 0;
  let position = 0;
  for (const part of partsOf(id)) {
    const rest = content.subarray(position);
    const end = endOfPart(part, rest, encoding);
    if (end === null) return false;
    if (part === 'encoding') encoding = rest[0] ?? 0;
    if (part === 'text' && !isText(rest.subarray(0, end - widthOf(encoding)), encoding)) return false;
    if (isWhole && !isLastPartText(part, rest, encoding, hasSeveralValues)) return false;
    position += end;
  }
  return true;
}

function partsOf(id: string): readonly Part[] {
  const parts = PARTS_BY_ID[id];
  if (parts !== undefined) return parts;
  if (id.startsWith('T')) return ['encoding', 'last text'];
  return id.startsWith('W') ? ['last url'] : [];
}

/** Length of a part at the start of `rest`, its terminator included, or null where it is not there. */
function endOfPart(part: Part, rest: Buffer, encoding: number): number | null {
  switch (part) {
    case 'encoding':
      return (rest[0] ?? 0xff) <= 3 ? 1 : null;
    case 'text':
      return endOfTerminated(rest, widthOf(encoding));
    case 'latin1':
      return endOfTerminated(rest, 1);
    case 'picture format':
      return ['PNG', 'JPG'].includes(rest.toString('latin1', 0, 3)) ? 3 : null;
    case 'last text':
    case 'last texts':
    case 'last url':
      return rest.length;
    default:
      return rest.length >= part ? part : null;
  }
}

function isLastPartText(part: Part, rest: Buffer, encoding: number, hasSeveralValues: boolean): boolean {
  const [first = rest] = splitTexts(rest, widthOf(encoding));
  if (part === 'last url') return isText(rest, 3);
  if (part === 'last text') return isText(hasSeveralValues ? rest : first, encoding);
  if (part === 'last texts') return splitTexts(rest, widthOf(encoding)).every((text) => isText(text, encoding));
  return true;
}

/** A description and then any number of texts, each with a time stamp of 4 bytes behind it (v2.4.0 frames, §4.9). */
function areSynchronisedLyrics(content: Buffer): boolean {
  const [encoding = 0xff, , , , timeStampFormat = 0, contentType = 0xff] = content;
  if (encoding > 1 || ![1, 2].includes(timeStampFormat) || contentType > 6) return false;
  const width = widthOf(encoding);
  let position = 6;
  for (let isDescription = true; ; isDescription = false) {
    const rest = content.subarray(position);
    const end = endOfTerminated(rest, width);
    if (end === null) return true;
    if (!isText(rest.subarray(0, end - width), encoding)) return false;
    position += end + (isDescription ? 0 : 4);
    if (position > content.length) return false;
  }
}

function widthOf(encoding: number): number {
  return encoding === 1 || encoding === 2 ? 2 : 1;
}

/** Position behind the first terminator, or null where there is none. */
export function endOfTerminated(bytes: Buffer, width: number): number | null {
  for (let position = 0; position + width <= bytes.length; position += width) {
    if (bytes.readUIntBE(position, width) === 0) return position + width;
  }
  return null;
}

function splitTexts(bytes: Buffer, width: number): Buffer[] {
  const texts: Buffer[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = endOfTerminated(rest, width);
    texts.push(end === null ? rest : rest.subarray(0, end - width));
    rest = end === null ? Buffer.alloc(0) : rest.subarray(end);
  }
  return texts;
}

/** Whether bytes are text in one of ID3's encodings: ISO 8859-1, UTF-16 with a byte order mark, UTF-16BE, UTF-8. */
function isText(bytes: Buffer, encoding: number): boolean {
  if (encoding === 0 || bytes.length === 0) return true;
  if (encoding === 3) return decodes(bytes, 'utf-8');
  if (bytes.length < 2) return false;
  // The two bytes of the mark are skipped whatever they are, and half a code unit at the end is left out.
  const start = encoding === 1 ? 2 : 0;
  const units = bytes.subarray(start, bytes.length - (bytes.length % 2));
  const isLittleEndian = encoding === 1 && bytes.readUInt16BE(0) === 0xfffe;
  return decodes(units, isLittleEndian ? 'utf-16le' : 'utf-16be');
}

function decodes(bytes: Buffer, label: string): boolean {
  try {
    new TextDecoder(label, { fatal: true }).decode(bytes);
    return true;
  } catch {
    // A TypeError says that the bytes are no text in this encoding: the very thing that was asked.
    return false;
  }
}
