import { FILE_ADDRESSES, isOfMpeg, KEPT_BY_PARSERS, KNOWN_ATTRIBUTES } from './mpd-elements.ts';
import { ODD_CHARACTER, type PlaylistFinding } from './playlist-finding.ts';

/** Reports a problem at a position of the text. */
export type Report = (at: number, problem: string, kind?: PlaylistFinding['kind']) => void;

/** Finds what parsers of XML read differently in the text of an MPD, whatever element it stands in. */
export function checkMarkup(text: string, found: Report): void {
  for (const { index, 0: markup, groups } of text.replace(DECLARATION, blank).matchAll(MARKUP)) {
    const { prefix, local, attribute, entity } = groups ?? {};
    if (attribute !== undefined) {
      if (KNOWN_ATTRIBUTES.has(attribute.toLowerCase()) && !QUALIFIED_ATTRIBUTES.has(attribute))
        found(index, `${markup.trim()} has a prefix, which some players pass over`);
    } else if (prefix !== undefined && local !== undefined) {
      if (isOfMpeg(local)) found(index, `<${prefix}${local}> has a prefix, which some players pass over`);
    } else if (entity === undefined || !/^(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos)$/.test(entity)) {
      found(index, `${markup.slice(0, 20)} is read differently by players`);
    }
  }
  for (const { index, 0: written, 1: name = '', 2: value = '' } of text.matchAll(ATTRIBUTE)) {
    if (!QUALIFIED_NAME.test(name)) found(index, `${name.slice(0, 60)} is no name of an attribute`);
    if (KEPT_BY_PARSERS.has(name)) found(index, `${name} has some parsers take the element for another one`);
    if (
      (FILE_ADDRESSES.has(name) ? value.replaceAll('&amp;', '') : value).includes('&') &&
      (KNOWN_ATTRIBUTES.has(name.toLowerCase()) || name === 'schemeIdUri')
    ) {
      found(index, `${name} has a reference to a character, which some players do not replace`);
    }
    if (KNOWN_ATTRIBUTES.has(name.toLowerCase()) && /^.\s|\s.$|[\t\r\n]/.test(value)) {
      found(index, `${written.trim().slice(0, 60)} has white space, which some players take as a part of it`);
    }
  }
  for (const { index, 1: address = '', 2: end } of text.matchAll(BASE_ADDRESS)) {
    if (end === undefined || !PLAIN_ADDRESS.test(address)) {
      found(
        index,
        'a base address with white space, a comment or a reference, which some players take as a part of it',
      );
    }
  }
  for (const { index, 1: name = '', 2: namespace = '' } of text.matchAll(NAMESPACE)) {
    if (isOfMpeg(name) && !/^.urn:mpeg:dash:schema:mpd:/i.test(namespace)) {
      found(index, `<${name}> is in another namespace, which some players pass over`);
    }
  }
  const odd = oddCharacterIn(text);
  if (odd !== null) found(odd, 'a character is white space for some players, or no text');
}

/** Tags and attributes with a prefix, references to entities, comments that end at once for some, sections of text, and instructions. */
const MARKUP =
  /<(?<prefix>[^\s<>"'=/]*:)(?<local>[\w.-]+)|\s(?!xmlns:|xsi:|xml:)[^\s<>"'=/]*:(?<attribute>[\w.-]+)\s*=|&(?<entity>[^;\s<]{0,20});?|<!--(?=-?>)|<!\[CDATA\[|<\?/g;
/** The declaration of a document that is what parsers take it for without one: they end it, and decode the rest, by what it says. */
const DECLARATION =
  /^\ufeff?<\?xml\s+version=(["'])1\.\d\1(?:\s+encoding=(["'])utf-8\2)?(?:\s+standalone=(["'])(?:yes|no)\3)?\s*\?>/i;

/** Attributes that SCTE 214-1 defines in its namespace, as ISO/IEC 23009-1 does without one: they say which codecs there are. */
const QUALIFIED_ATTRIBUTES: ReadonlySet<string> = new Set(['supplementalCodecs', 'supplementalProfiles']);

/** An element and its default namespace, quotes included. */
const NAMESPACE = /<([\w.-]+)\s(?:[^<>]*?\s)?xmlns\s*=\s*("[^"<]*"|'[^'<]*')/g;
/** A base address, and its end where no markup stands in it. */
const BASE_ADDRESS = /<BaseURL(?:\s[^<>]*)?(?<!\/)>([^<]*)<(\/BaseURL)?/g;
/** An address as it is, but for an ampersand. */
const PLAIN_ADDRESS = /^[^\s<&](?:(?:[^<&]|&amp;)*[^\s<&])?$/;
/** A name with a prefix at most. Some players pass over what stands before the first letter. */
const QUALIFIED_NAME = /^[A-Za-z][\w.-]*(?::[A-Za-z_][\w.-]*)?$/;
/** An attribute and its value, quotes included. */
const ATTRIBUTE = /\s([^\s"'<>=/]+)\s*=\s*("[^"<]*"|'[^'<]*')/g;
/** A character that XML does not allow, or that some parsers take for white space, or leave out. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const ODD_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u0085\u2028\u2029\ufeff]/;

/** Returns the position of a character that parsers take for different things, at least where it stands; null where there is none. */
function oddCharacterIn(text: string): number | null {
  const at = text.slice(1).search(ODD_IN_XML);
  if (at !== -1) return at + 1;
  for (const { index, 0: tag } of text.matchAll(/<[^!<>][^<>]*>/g)) {
    if (/^<\/.*\s>$/s.test(tag) || ODD_CHARACTER.test(tag.replace(/"[^"]*"|'[^']*'|[\t\r\n]/g, ''))) return index;
  }
  return null;
}

/** Returns spaces in place of a text, so that what follows it keeps its position. */
function blank(text: string): string {
  return ' '.repeat(text.length);
}
