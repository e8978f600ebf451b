import { isUtf8 } from 'node:buffer';

const REPLACEMENT_CHARACTER = '\ufffd';

/** Where bytes stop being UTF-8, by line and character counted from 1; null where they are UTF-8 to their end. */
export function firstNonUtf8(bytes: Buffer): { readonly line: number; readonly column: number } | null {
  for (let line = 1, start = 0; start <= bytes.length; line += 1) {
    const newline = bytes.indexOf('\n', start);
    const end = newline < 0 ? bytes.length : newline;
    const text = bytes.subarray(start, end);
    if (!isUtf8(text)) return { line, column: firstNonUtf8Column(text) };
    start = end + 1;
  }
  return null;
}

/** Whatever is no UTF-8 is decoded to U+FFFD, whose own three bytes then do not stand there. */
function firstNonUtf8Column(line: Buffer): number {
  let offset = 0;
  let column = 1;
  for (const character of line.toString('utf8')) {
    const sizeBytes = Buffer.byteLength(character);
    if (character === REPLACEMENT_CHARACTER && !isUtf8(line.subarray(offset, offset + sizeBytes))) break;
    offset += sizeBytes;
    column += 1;
  }
  return column;
}
