/**
 * `dcterms:provenance` as an attribute (`dcterms:provenance="…"`) or as an element (`<dcterms:provenance>…`), under
 * any prefix: the prefix is the packet's choice.
 */
const PROVENANCE_PROPERTY = /(?:\s[\w.-]+:provenance\s*=\s*["']\s*[^"'\s])|(?:<[\w.-]+:provenance[\s>/])/;

/**
 * Tells whether an XMP packet names the address of a manifest (`dcterms:provenance`; C2PA 2.2 §11.4). Such an address is
 * never fetched; the file is treated as one without a manifest, with a warning.
 */
export function namesRemoteManifest(xmpText: string): boolean {
  return PROVENANCE_PROPERTY.test(xmpText);
}

/** `xmpMM:InstanceID` as an attribute or as an element, under any prefix. References to other files have `instanceID`. */
const INSTANCE_ID_PROPERTY = /\s[\w.-]+:InstanceID\s*=\s*(?:"([^"<]*)"|'([^'<]*)')|<[\w.-]+:InstanceID\s*>([^<]*)</;
const MAX_INSTANCE_ID_CHARACTERS = 255;

/**
 * Returns the identifier that an XMP packet gives its file (C2PA 2.2 §8.3). Returns null where there is none, and for one
 * that is longer than 255 characters, escaped or not printable.
 */
export function instanceIdIn(xmpText: string): string | null {
  const found = INSTANCE_ID_PROPERTY.exec(xmpText);
  const value = (found?.[1] ?? found?.[2] ?? found?.[3] ?? '').trim();
  const isUsable = /^[^\p{C}&]+$/u.test(value) && value.isWellFormed() && value.length <= MAX_INSTANCE_ID_CHARACTERS;
  return isUsable ? value : null;
}
