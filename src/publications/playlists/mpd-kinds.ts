import type { MpdRepresentation } from './playlist-document.ts';
import { childrenOf, type XmlElement } from './xml-element.ts';

/** Essential properties of pictures and sound, each with the values of it that known players play. */
export const PLAYED_PROPERTIES: ReadonlyMap<string, RegExp> = new Map([
  ['urn:mpeg:mpegB:cicp:ColourPrimaries', /^[1567]$/],
  ['urn:mpeg:mpegB:cicp:TransferCharacteristics', /^(?:1|6|1[3-6])$/],
  ['urn:mpeg:mpegB:cicp:MatrixCoefficients', /^[0156]$/],
]);

/** Returns true for a representation that says its type, as it has to (ISO/IEC 23009-1 §5.3.7.2): some players leave out others. */
export function hasType(lineage: readonly XmlElement[]): boolean {
  return lineage.some(({ attributes }) => (attributes.get('mimeType') ?? '') !== '');
}

/**
 * Returns true for a representation that all known players play as media. They leave out one without a type, or with an essential
 * property, or a value of it, that they do not know; key frames and pictures of seek bars are none.
 */
export function isPlayedByAll(lineage: readonly XmlElement[]): boolean {
  if (!hasType(lineage)) return false;
  const properties = lineage.flatMap((element) => childrenOf(element, 'EssentialProperty'));
  return properties.every(({ attributes }) => {
    return PLAYED_PROPERTIES.get(attributes.get('schemeIdUri') ?? '')?.test(attributes.get('value') ?? '') === true;
  });
}

/** Returns the components that a representation says it has; some players leave out what has several, of whatever kinds. */
export function componentsOf(lineage: readonly XmlElement[]): XmlElement[] {
  return lineage.flatMap((element) => childrenOf(element, 'ContentComponent'));
}

/** Returns the kinds of media that a representation says it is of: `video`, `audio`, `text` or another. */
export function statedKinds(lineage: readonly XmlElement[]): Set<string> {
  const stated = [...lineage, ...componentsOf(lineage)].flatMap(({ attributes }) => [
    attributes.get('contentType') ?? [],
    attributes.get('mimeType')?.split('/', 1) ?? [],
  ]);
  return new Set(stated.flat());
}

/**
 * Returns the schemes by which a representation says that it is encrypted. What stands further up is for elements in it to refer to
 * (ISO/IEC 23009-1 §5.8.4.1).
 */
export function protectionOf([, , set, representation]: MpdRepresentation['lineage']): string[] {
  const elements = [set, representation].flatMap((element) => childrenOf(element, 'ContentProtection'));
  return elements.map(({ attributes }) => (attributes.get('schemeIdUri') ?? attributes.get('ref') ?? '').toLowerCase());
}
