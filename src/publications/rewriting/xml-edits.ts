import assert from 'node:assert/strict';
import type { XmlElement } from '../playlists/xml-element.ts';

/** Sets the attributes of an element in its text; null removes one. New ones go behind the element's name. */
export function editAttributes(
  text: string,
  { start }: XmlElement,
  changes: Readonly<Record<string, string | null>>,
): TextEdit[] {
  const edits: TextEdit[] = [];
  const wanted = new Map(Object.entries(changes));
  const missing = new Map([...wanted].filter((change): change is [string, string] => change[1] !== null));
  const name = /<[^\s/>]+/y;
  name.lastIndex = start;
  const nameEnd = start + (name.exec(text)?.[0].length ?? 0);
  const attribute = /\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')/gy;
  attribute.lastIndex = nameEnd;
  for (let match = attribute.exec(text); match !== null; match = attribute.exec(text)) {
    const [whole, attributeName = '', quoted = ''] = match;
    const value = wanted.get(attributeName);
    if (value === undefined) continue;
    missing.delete(attributeName);
    const end = match.index + whole.length;
    if (value === null) edits.push({ start: match.index, end, replacement: '' });
    else edits.push({ start: end - quoted.length, end, replacement: `"${escapeXml(value)}"` });
  }
  const added = [...missing].map(([attributeName, value]) => ` ${attributeName}="${escapeXml(value)}"`).join('');
  if (added !== '') edits.push({ start: nameEnd, end: nameEnd, replacement: added });
  return edits;
}

/** Removes an element, and the line it stands in where it is alone there. */
export function removeElement(text: string, { start, end }: XmlElement): TextEdit {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const nextLine = text.indexOf('\n', end);
  const isAlone =
    text.slice(lineStart, start).trim() === '' && nextLine !== -1 && text.slice(end, nextLine).trim() === '';
  return isAlone ? { start: lineStart, end: nextLine + 1, replacement: '' } : { start, end, replacement: '' };
}

/** Puts text in front of an element's closing tag, opening the element where it is an empty one. */
export function appendInside(text: string, { start, end }: XmlElement, addition: string): TextEdit {
  const closing = text.lastIndexOf('</', end - 1);
  if (closing >= start && !text.slice(start, end).endsWith('/>')) {
    return { start: closing, end: closing, replacement: addition };
  }
  const slash = text.lastIndexOf('/>', end);
  return { start: slash, end, replacement: `>${addition}</${elementName(text, start)}>` };
}

/** Returns the name of the element that starts there, with its prefix. */
export function elementName(text: string, start: number): string {
  const name = /<([^\s/>]+)/y;
  name.lastIndex = start;
  return name.exec(text)?.[1] ?? '';
}

/** Returns white space between the start of the line and the element. */
export function indentOf(text: string, { start }: XmlElement): string {
  const line = text.slice(text.lastIndexOf('\n', start - 1) + 1, start);
  return /^\s*$/.test(line) ? line : '';
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Characters `[start, end)` of a text that are replaced. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Applies edits that do not overlap, an insertion before a replacement at the same position; all else stays. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  const pieces: string[] = [];
  let from = 0;
  for (const { start, end, replacement } of edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    assert(start >= from && end >= start, 'edits do not overlap');
    pieces.push(text.slice(from, start), replacement);
    from = end;
  }
  return pieces.join('') + text.slice(from);
}

/**
 * Returns the relative reference (RFC 3986 §4.2) that leads from a file or folder ending in `/` to another path
 * of the folder.
 */
export function relativeReference(from: string, to: string): string {
  const fromFolders = from.split('/').slice(0, -1);
  const target = to.split('/');
  let shared = 0;
  while (shared < fromFolders.length && shared < target.length - 1 && fromFolders[shared] === target[shared])
    shared += 1;
  const up = fromFolders.slice(shared).map(() => '..');
  return [...up, ...target.slice(shared).map(encodeURIComponent)].join('/');
}
