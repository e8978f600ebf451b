/** Words before the extension of a file name that say more about its language: `film.en.forced.srt`. */
const MARKS: ReadonlyMap<string, 'forced' | 'caption'> = new Map([
  ['forced', 'forced'],
  ['sdh', 'caption'],
  ['cc', 'caption'],
]);

/** Tag of an unknown language (ISO 639-2). */
export const UNKNOWN_LANGUAGE = 'und';

const ENGLISH_NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' });

/** Returns the canonical tag of a language that exists, such as `de` for `deu` or `ger`; null for anything else. */
export function knownLanguage(code: string | null): string | null {
  if (code === null || !/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/.test(code)) return null;
  const tag = canonicalTag(code);
  return tag === null || tag === UNKNOWN_LANGUAGE || ENGLISH_NAMES.of(tag) === undefined ? null : tag;
}

/** Returns the canonical form of a validated tag, `pt-BR` for `pt-br`; null where it is no language tag. */
export function canonicalTag(code: string): string | null {
  try {
    return Intl.getCanonicalLocales(code)[0] ?? null;
  } catch {
    // The code is no language tag.
    return null;
  }
}

/** Language and mark in a file's name: `film.pt-BR.srt`, `audio_en.m4a`, `film.en.forced.vtt`. */
interface NameHints {
  readonly language: string | null;
  readonly mark: 'forced' | 'caption' | null;
}

export function hintsOfName(path: string): NameHints {
  const stem = path.slice(path.lastIndexOf('/') + 1).replace(/\.[^.]*$/, '');
  const words = stem.split(/[._ ]/);
  const mark = MARKS.get(words.at(-1)?.toLowerCase() ?? '') ?? null;
  if (mark !== null) words.pop();
  const last = words.at(-1) ?? '';
  // A name that is nothing but a code is one, too: `en.vtt`.
  const language = knownLanguage(last) ?? knownLanguage(/-([A-Za-z]{2,3})$/.exec(last)?.[1] ?? null);
  return { language, mark };
}

/** Returns the name of a language in the language itself, capitalised, as menus of players show it. */
export function languageName(tag: string): string {
  if (tag === UNKNOWN_LANGUAGE) return 'Original';
  const name = new Intl.DisplayNames([tag], { type: 'language', fallback: 'none' }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}
