import { XMLParser } from 'fast-xml-parser';

/** A node as the parser returns it: its content or text under its name, its attributes under `:@`. */
export type XmlNode = Readonly<Record<string, unknown>> & { readonly ':@'?: Readonly<Record<string, string>> };

interface XmlOptions {
  readonly maxNestedTags: number;
  readonly trimValues?: boolean;
  readonly captureMetaData?: boolean;
}

/** Makes a parser of documents that may be hostile: it returns nodes in order, names without prefixes, and values as they are written. */
export function makeXmlParser(options: XmlOptions): XMLParser {
  return new XMLParser({
    preserveOrder: true,
    ignoreAttributes: false,
    attributeNamePrefix: '',
    removeNSPrefix: true,
    parseTagValue: false,
    parseAttributeValue: false,
    // A document defines no entities: `decodeEntities` knows those of XML alone.
    processEntities: false,
    ...options,
  });
}

/** A document type declaration, which defines entities, or the definition of one. */
export const DOCUMENT_TYPE = /<!DOCTYPE|<!ENTITY/i;

const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }),
);

/** Replaces the five entities of XML and references to characters. */
export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole;
    const code = decimal !== undefined ? Number.parseInt(decimal, 10) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
