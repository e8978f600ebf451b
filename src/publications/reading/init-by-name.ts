import { AppError } from '#errors/app-error.ts';

/** Words that say "init segment" and nothing about which rendition it is of. */
const GENERIC_WORDS = new Set(['init', 'initialization', 'header', 'head', 'ini']);

/**
 * Finds the init segment of a fragment that no playlist speaks of: among the init segments of the nearest folder (its
 * own, else the next one up that has any, else all), the one whose name shares the most with the fragment's.
 */
export function initByName(fragment: string, inits: readonly string[]): string {
  const candidates = nearest(fragment, inits);
  const [only] = candidates;
  if (candidates.length === 1 && only !== undefined) return only;
  const words = wordsOf(fragment);
  // The last number counts the fragments; it says nothing about the rendition.
  const lastNumber = words.findLastIndex((word) => /^\d+$/.test(word));
  if (lastNumber !== -1) words.splice(lastNumber, 1);

  const scored = candidates
    .map((init) => ({ init, score: sharedWords(init, words) }))
    .filter(({ score }) => score >= 0);
  const best = Math.max(...scored.map(({ score }) => score));
  const winners = scored.filter(({ score }) => score === best).map(({ init }) => init);
  const [winner] = winners;
  if (winners.length !== 1 || winner === undefined) {
    throw new AppError('FRAGMENT_WITHOUT_INIT', { fragment, candidates: candidates.slice(0, 10) });
  }
  return winner;
}

function nearest(fragment: string, inits: readonly string[]): readonly string[] {
  for (let folder = folderOf(fragment); ; folder = folderOf(folder)) {
    const here = inits.filter((init) => folderOf(init) === folder);
    if (here.length > 0) return here;
    if (folder === '') return inits;
  }
}

/** How many words of the init segment's name the fragment has too, in order; -1 where it lacks one of them. */
function sharedWords(init: string, words: readonly string[]): number {
  let from = 0;
  let shared = 0;
  for (const word of wordsOf(init)) {
    if (GENERIC_WORDS.has(word)) continue;
    const at = words.indexOf(word, from);
    if (at === -1) return -1;
    from = at + 1;
    shared += 1;
  }
  return shared;
}

/** Runs of letters and runs of digits of a file name without its extension, in lower case. */
function wordsOf(path: string): string[] {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.[^.]*$/, '');
  return name.toLowerCase().match(/\p{L}+|\d+/gu) ?? [];
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0));
}
