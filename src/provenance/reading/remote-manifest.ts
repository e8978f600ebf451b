/**
 * `dcterms:provenance` as an attribute (`dcterms:provenance="…"`) or as an element (`<dcterms:provenance>…`), under
 * any prefix: the prefix is the packet's choice.
 */
const PROVENANCE_PROPERTY = /(?:\s[\w.-]+:provenance\s*=\s*["']\s*[^"'\s])|(?:<[\w.-]+:provenance[\s>/])/;

/**
 * Whether an XMP packet names the address of a manifest (`dcterms:provenance`; C2PA 2.2 §11.4). Such an address is
 * never fetched; the file counts as one without a manifest, with a warning.
 */
export function namesRemoteManifest(xmpText: string): boolean {
  return PROVENANCE_PROPERTY.test(xmpText);
}
