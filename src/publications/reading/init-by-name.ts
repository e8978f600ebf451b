import { AppError } from '#errors/app-error.ts';

/** Words that say "init segment" and nothing about which rendition it is of. */
const GENERIC_WORDS = new Set(['init', 'initialization', 'header', 'head', 'ini']);

/** An init segment by its path, with the words of its name that tell renditions apart. */
interface NamedInit {
  readonly path: string;
  readonly words: readonly string[];
}

/**
 * Finds the init segments of fragments that no playlist speaks of: among the init segments of the nearest folder (its
 * own, else the next one up that has any, else all), the one whose name shares the most with the fragment's.
 */
export class InitsByName {
  readonly #all: readonly NamedInit[];
  readonly #byFolder: ReadonlyMap<string, readonly NamedInit[]>;
  /** What was found for fragments of the same folder and words: those of one rendition differ in their number only. */
  readonly #found = new Map<string, string>();

  constructor(paths: readonly string[]) {
    this.#all = paths.map((path) => ({ path, words: wordsOf(path).filter((word) => !GENERIC_WORDS.has(word)) }));
    this.#byFolder = Map.groupBy(this.#all, ({ path }) => folderOf(path));
  }

  initOf(fragment: string): string {
    const words = wordsOf(fragment);
    // The last number counts the fragments; it says nothing about the rendition.
    const lastNumber = words.findLastIndex((word) => /^\d+$/.test(word));
    if (lastNumber !== -1) words.splice(lastNumber, 1);
    const key = [folderOf(fragment), ...words].join('\0');
    const init = this.#found.get(key) ?? this.#best(fragment, words);
    this.#found.set(key, init);
    return init;
  }

  #best(fragment: string, words: readonly string[]): string {
    const candidates = this.#nearest(fragment);
    const [only] = candidates;
    if (candidates.length === 1 && only !== undefined) return only.path;
    const scored = candidates
      .map((init) => ({ init, score: sharedWords(init.words, words) }))
      .filter(({ score }) => score >= 0);
    const best = scored.reduce((highest, { score }) => Math.max(highest, score), -1);
    const winners = scored.filter(({ score }) => score === best).map(({ init }) => init);
    const [winner] = winners;
    if (winners.length !== 1 || winner === undefined) {
      throw new AppError('FRAGMENT_WITHOUT_INIT', {
        fragment,
        candidates: candidates.slice(0, 10).map(({ path }) => path),
      });
    }
    return winner.path;
  }

  #nearest(fragment: string): readonly NamedInit[] {
    for (let folder = folderOf(fragment); ; folder = folderOf(folder)) {
      const here = this.#byFolder.get(folder);
      if (here !== undefined) return here;
      if (folder === '') return this.#all;
    }
  }
}

/** How many words of an init segment the fragment has too, in order; -1 where it lacks one of them. */
function sharedWords(ofInit: readonly string[], ofFragment: readonly string[]): number {
  let from = 0;
  for (const word of ofInit) {
    const at = ofFragment.indexOf(word, from);
    if (at === -1) return -1;
    from = at + 1;
  }
  return ofInit.length;
}

/** Runs of letters and runs of digits of a file name without its extension, in lower case. */
function wordsOf(path: string): string[] {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.[^.]*$/, '');
  return name.toLowerCase().match(/\p{L}+|\d+/gu) ?? [];
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0));
}
