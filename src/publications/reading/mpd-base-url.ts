import type { FolderIndex } from './folder-index.ts';
import type { MpdValues } from './mpd-values.ts';
import { childrenOf, type XmlElement } from './xml-element.ts';

/** The base for references inside `element`. Several BaseURL elements are alternatives: the first inside the folder counts. */
export function enterBaseUrl(base: URL, element: XmlElement, index: FolderIndex, values: MpdValues): URL {
  const alternatives = childrenOf(element, 'BaseURL');
  let refusal: unknown;
  for (const alternative of alternatives) {
    try {
      return index.enter(base, alternative.text, values.placeOf(alternative));
    } catch (error) {
      // Another alternative may lie inside the folder; the first refusal is thrown where none does.
      refusal ??= error;
    }
  }
  if (refusal !== undefined) throw refusal;
  return base;
}
