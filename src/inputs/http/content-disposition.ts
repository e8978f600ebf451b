/** The longest header that is looked at, in characters. */
const HEADER_MAX_LENGTH = 4096;

/**
 * The file name of a Content-Disposition header, if it has one: `filename*` (RFC 8187) before `filename` (RFC 6266,
 * with RFC 2047 words and raw UTF-8, as servers send them). It is not yet safe to be used as one.
 */
export function fileNameOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > HEADER_MAX_LENGTH) return undefined;
  const parameters = parametersOf(header);
  const extended = parameters.get('filename*');
  const decoded = extended === undefined ? undefined : decodeExtended(extended);
  return decoded ?? decodePlain(parameters.get('filename'));
}

/** The parameters behind the disposition type, names in lower case; the first of each name counts. */
function parametersOf(header: string): Map<string, string> {
  const parameters = new Map<string, string>();
  const pattern = /;\s*([\w!#$&+^`|~*%'.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))/g;
  for (const [, name, quoted, bare] of header.matchAll(pattern)) {
    const key = (name as string).toLowerCase();
    if (parameters.has(key)) continue;
    parameters.set(key, quoted === undefined ? (bare as string).trim() : quoted.replace(/\\(.)/g, '$1'));
  }
  return parameters;
}

/** `charset'language'percent-encoded` (RFC 8187 §3.2); undefined where it is malformed. */
function decodeExtended(value: string): string | undefined {
  const [, charset, encoded] = /^([\w-]+)'[\w-]*'(.*)$/.exec(value) ?? [];
  if (charset === undefined || encoded === undefined) return undefined;
  if (!/^(?:[^%]|%[0-9a-f]{2})*$/i.test(encoded)) return undefined;
  const bytes = Buffer.from(
    encoded.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    'latin1',
  );
  return decodeBytes(bytes, charset);
}

/** Header values arrive as bytes read as Latin-1; where these are UTF-8, that is what was meant. */
function decodePlain(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const word = /^=\?([\w-]+)\?([BQ])\?([^?]*)\?=$/i.exec(value);
  if (word !== null) return decodeWord(word[1] as string, word[2] as string, word[3] as string);
  return decodeBytes(Buffer.from(value, 'latin1'), 'utf-8') ?? value;
}

function decodeWord(charset: string, encoding: string, text: string): string | undefined {
  if (/^B$/i.test(encoding)) return decodeBytes(Buffer.from(text, 'base64'), charset);
  const raw = text
    .replaceAll('_', ' ')
    .replace(/=([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  return decodeBytes(Buffer.from(raw, 'latin1'), charset);
}

/** Undefined where the bytes are none of the character set, or nobody knows it. */
function decodeBytes(bytes: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    // An unknown character set or bytes that are not of it: the header says nothing.
    return undefined;
  }
}
