import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { partitionPoint } from '#bytes/partition-point.ts';
import { AppError } from '#errors/app-error.ts';
import { DOCUMENT_TYPE, decodeEntities, makeXmlParser, type XmlNode } from '#formats/xml.ts';
import { MAX_MPD_DEPTH, MAX_MPD_TAGS, refuseLarger } from './limits.ts';

/** An element of an XML document and where it stands in the text. Names are without their namespace prefix. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** The same by their names: representations ask their set again and again, and either may number thousands. */
  readonly childrenByName: ReadonlyMap<string, readonly XmlElement[]>;
  /** The text directly inside the element, trimmed. */
  readonly text: string;
  /** The element is `[start, end)` of the document's characters, tags included. */
  readonly start: number;
  readonly end: number;
}

const POSITION = XMLParser.getMetaDataSymbol() as unknown as string;

const parser = makeXmlParser({ maxNestedTags: MAX_MPD_DEPTH, captureMetaData: true });

/**
 * Parses a document and returns its root element. Document type declarations are refused: they define entities. Throws
 * `PLAYLIST_TOO_LARGE` or `PLAYLIST_MALFORMED`.
 */
export function parseXml(path: string, text: string): XmlElement {
  const doctype = text.search(DOCUMENT_TYPE);
  if (doctype !== -1)
    throw malformed(path, new LineIndex(text).lineAt(doctype), 'document type declarations are not accepted');
  refuseLarger(path, 'XML tags', countTags(text), MAX_MPD_TAGS);
  const verdict = XMLValidator.validate(text.replace(/^\uFEFF/, ''));
  if (verdict !== true) throw malformed(path, verdict.err.line, 'it is not well-formed XML');
  const root = rootOf(path, text);
  if (root === undefined) throw malformed(path, 1, 'it has no root element');
  return root;
}

function countTags(text: string): number {
  let count = 0;
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', at + 1)) count += 1;
  return count;
}

function rootOf(path: string, text: string): XmlElement | undefined {
  try {
    const nodes = parser.parse(text) as XmlNode[];
    return nodes.map(toElement).find((element) => element !== null && !element.name.startsWith('?')) ?? undefined;
  } catch (cause) {
    const problem = `it cannot be parsed as XML, or nests more than ${MAX_MPD_DEPTH} elements deep`;
    throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line: 1, problem }, { cause });
  }
}

function toElement(node: XmlNode): XmlElement | null {
  const name = Object.keys(node).find((key) => key !== ':@');
  if (name === undefined || name.startsWith('#')) return null;
  const content = node[name] as XmlNode[];
  const children = content.map(toElement).filter((child) => child !== null);
  const { startIndex, endIndex } = node[POSITION] as { startIndex: number; endIndex: number };
  return {
    name,
    attributes: new Map(Object.entries(node[':@'] ?? {}).map(([key, value]) => [key, decodeEntities(value)])),
    children,
    childrenByName: Map.groupBy(children, (child) => child.name),
    text: decodeEntities(content.map((child) => child['#text'] ?? '').join('')).trim(),
    start: startIndex,
    end: endIndex,
  };
}

function malformed(playlist: string, line: number, problem: string): AppError {
  return new AppError('PLAYLIST_MALFORMED', { playlist, line, problem });
}

/** Returns the children of that name, in document order. */
export function childrenOf(element: XmlElement, name: string): readonly XmlElement[] {
  return element.childrenByName.get(name) ?? [];
}

export function childOf(element: XmlElement, name: string): XmlElement | undefined {
  return element.childrenByName.get(name)?.[0];
}

/** Returns the first element of that name, in document order: the element itself, or one in it. */
export function findElement(element: XmlElement, name: string): XmlElement | undefined {
  if (element.name === name) return element;
  for (const child of element.children) {
    const found = findElement(child, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Maps character positions of a text to lines. */
export class LineIndex {
  readonly #lineStarts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#lineStarts.push(at + 1);
  }

  /** Returns the number, counted from one, of the line that the character at `index` stands in. */
  lineAt(index: number): number {
    return partitionPoint(this.#lineStarts, (start) => start > index);
  }
}
