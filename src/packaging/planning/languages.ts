/** Words between the language and the extension of a file name that say more about it: `film.en.forced.srt`. */
const MARKS: Readonly<Record<string, 'forced' | 'caption'>> = { forced: 'forced', sdh: 'caption', cc: 'caption' };

/** Stands for a language that nobody knows (ISO 639-2). */
export const UNKNOWN_LANGUAGE = 'und';

const ENGLISH_NAMES = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' });

/** The canonical tag of a language that is known to exist, such as `de` for `deu` or `ger`; null for anything else. */
export function knownLanguage(code: string | null): string | null {
  if (code === null || !/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/.test(code)) return null;
  const tag = canonicalTag(code);
  return tag === null || tag === UNKNOWN_LANGUAGE || ENGLISH_NAMES.of(tag) === undefined ? null : tag;
}

/** The canonical form of a tag that has been validated: `pt-BR` for `pt-br`. */
export function canonicalTag(code: string): string | null {
  try {
    return Intl.getCanonicalLocales(code)[0] ?? null;
  } catch {
    // The code is no language tag.
    return null;
  }
}

/** What a file's name says of its language: `film.pt-BR.srt`, `audio_en.m4a`, `film.en.forced.vtt`. */
export interface NameHints {
  readonly language: string | null;
  readonly mark: 'forced' | 'caption' | null;
}

export function hintsOfName(path: string): NameHints {
  const stem = path.slice(path.lastIndexOf('/') + 1).replace(/\.[^.]*$/, '');
  const words = stem.split(/[._ ]/);
  const mark = MARKS[words.at(-1)?.toLowerCase() ?? ''] ?? null;
  if (mark !== null) words.pop();
  const last = words.at(-1) ?? '';
  // A name that is nothing but a code is one, too: `en.vtt`.
  const language = knownLanguage(last) ?? knownLanguage(/-([A-Za-z]{2,3})$/.exec(last)?.[1] ?? null);
  return { language, mark };
}

/** What players call a language in their menus: its name in the language itself, with a capital. */
export function languageName(tag: string): string {
  if (tag === UNKNOWN_LANGUAGE) return 'Original';
  const name = new Intl.DisplayNames([tag], { type: 'language', fallback: 'none' }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}
