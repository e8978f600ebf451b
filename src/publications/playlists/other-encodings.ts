import { foldedPath } from '../presentation/presentation.ts';

/** The encodings of text that browsers know in which letters of ASCII mean themselves (WHATWG Encoding Standard §4.2), but for UTF-8. */
const LABELS = [
  'ibm866 koi8-r koi8-u macintosh x-mac-cyrillic x-user-defined gbk gb18030 big5 euc-jp iso-2022-jp shift_jis euc-kr windows-874',
  ...[0, 1, 2, 3, 4, 5, 6, 7, 8].map((number) => `windows-125${number}`),
  ...[2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16].map((number) => `iso-8859-${number}`),
].flatMap((labels) => labels.split(' '));

type Encoding = InstanceType<typeof TextDecoder>;

/** The first letters beyond ASCII of a text, with one of ASCII that some encodings take for a part of them. */
const LETTERS = /[^ -~]+[0-9@-~]?/;

/** Reads addresses as players do that take a playlist for text in another encoding: servers may say any, and browsers go by that. */
export class OtherEncodings {
  readonly #paths: Iterable<string>;
  /** The letters of all names of the folder. Made when it is asked for. */
  #letters: ReadonlySet<string> | undefined;
  /** Made when a text needs them: that takes some 20 ms. */
  #encodings: readonly Encoding[] | undefined;
  readonly #known = new Map<string, readonly Encoding[]>();

  constructor(paths: Iterable<string>) {
    this.#paths = paths;
  }

  /** Returns texts as they are read in each encoding by which their first letters are those of names. */
  readingsOf(texts: readonly string[]): string[][] {
    const [letters] = LETTERS.exec(texts.join('/')) ?? [];
    if (letters === undefined) return [];
    this.#encodings ??= LABELS.map((label) => new TextDecoder(label));
    const encodings =
      this.#known.get(letters) ?? this.#encodings.filter((each) => this.#hasAll(decoded(each, letters)));
    this.#known.set(letters, encodings);
    return encodings.map((each) => texts.map((text) => decoded(each, text)));
  }

  #hasAll(text: string): boolean {
    this.#letters ??= new Set([...this.#paths].flatMap(lettersOf));
    return lettersOf(text).every((letter) => this.#letters?.has(letter));
  }
}

function decoded(encoding: Encoding, text: string): string {
  return encoding.decode(Buffer.from(text));
}

function lettersOf(text: string): string[] {
  return [...new Set(foldedPath(text).normalize('NFD'))];
}
