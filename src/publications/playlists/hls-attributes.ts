/** An attribute of an HLS tag and where its value stands in the line, quotes included. */
interface PlacedAttribute {
  readonly name: string;
  /** Without quotes. */
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

/** Parses the attribute list of a tag's line (RFC 8216bis §4.2); text that is no attribute ends it. */
export function placedAttributes(line: string): PlacedAttribute[] {
  const attributes: PlacedAttribute[] = [];
  const pattern = /[:,]\s*([A-Z0-9-]+)=("[^"]*"|[^",\s]*)\s*(?=,|$)/gy;
  pattern.lastIndex = Math.max(line.indexOf(':'), 0);
  for (let match = pattern.exec(line); match !== null; match = pattern.exec(line)) {
    const [whole, name = '', value = ''] = match;
    const start = match.index + whole.indexOf('=') + 1;
    attributes.push({ name, value: value.replace(/^"|"$/g, ''), start, end: start + value.length });
  }
  return attributes;
}

/** Returns the value of an attribute of a tag's line, without quotes. */
export function hlsAttribute(line: string, name: string): string | undefined {
  return placedAttributes(line).find((attribute) => attribute.name === name)?.value;
}

/**
 * Returns the line with an attribute's value replaced, quotes and all else kept; unchanged where it has
 * no such attribute.
 */
export function replaceHlsAttribute(line: string, name: string, value: string): string {
  const attribute = placedAttributes(line).find((candidate) => candidate.name === name);
  if (attribute === undefined) return line;
  const quote = line[attribute.start] === '"' ? '"' : '';
  return line.slice(0, attribute.start) + quote + value + quote + line.slice(attribute.end);
}

/** Returns the line without an attribute. */
export function removeHlsAttribute(line: string, name: string): string {
  const attribute = placedAttributes(line).find((candidate) => candidate.name === name);
  if (attribute === undefined) return line;
  const nameStart = attribute.start - name.length - 1;
  const isFirst = /:\s*$/.test(line.slice(0, nameStart));
  if (isFirst) return line.slice(0, nameStart) + line.slice(attribute.end).replace(/^\s*,\s*/, '');
  return line.slice(0, nameStart).replace(/,\s*$/, '') + line.slice(attribute.end);
}
