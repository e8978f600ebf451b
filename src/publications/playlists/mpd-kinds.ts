import type { XmlElement } from './xml-element.ts';

/** Essential properties of pictures and sound that known players play. */
export const PLAYED_PROPERTIES: ReadonlySet<string> = new Set([
  'urn:mpeg:mpegB:cicp:ColourPrimaries',
  'urn:mpeg:mpegB:cicp:TransferCharacteristics',
  'urn:mpeg:mpegB:cicp:MatrixCoefficients',
]);

/** Returns true for a representation that says its type, as it has to (ISO/IEC 23009-1 §5.3.7.2): some players leave out others. */
export function hasType(lineage: readonly XmlElement[]): boolean {
  return lineage.some(({ attributes }) => (attributes.get('mimeType') ?? '') !== '');
}

/**
 * Returns true for a representation that all known players play as media. They leave out one without a type, or with an essential
 * property that they do not know; key frames and pictures of seek bars are none.
 */
export function isPlayedByAll(lineage: readonly XmlElement[]): boolean {
  if (!hasType(lineage)) return false;
  const properties = lineage.flatMap(({ childrenByName }) => childrenByName.get('EssentialProperty') ?? []);
  return properties.every(({ attributes }) => PLAYED_PROPERTIES.has(attributes.get('schemeIdUri') ?? ''));
}

/** Returns the kinds of media that a representation says it is of: `video`, `audio`, `text` or another. */
export function statedKinds(lineage: readonly XmlElement[]): Set<string> {
  const stated = lineage.flatMap(({ attributes }) => [
    attributes.get('contentType') ?? [],
    attributes.get('mimeType')?.split('/', 1) ?? [],
  ]);
  return new Set(stated.flat());
}
