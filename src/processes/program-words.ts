import { limitWords, MEDIA_PROCESS_LIMITS, probeProtections } from './protections.ts';

let words: Promise<readonly string[]> | undefined;

/**
 * Returns the words to put before a foreign program: limits of the kernel, no new privileges, and an end together with this process, however
 * that ends. Where the system lacks them: nothing; a program that outlives its worker ends when it finds its folders gone.
 */
export function programWords(): Promise<readonly string[]> {
  words ??= probe();
  return words;
}

/** The sandbox of the worker is that of its programs, too. */
async function probe(): Promise<readonly string[]> {
  const { prlimit, setpriv } = await probeProtections('off');
  return [...(prlimit === null ? [] : limitWords(prlimit, MEDIA_PROCESS_LIMITS)), ...setpriv];
}
