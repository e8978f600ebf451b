/** Numbers of 17 digits may come out as their neighbour (see exact-numbers.ts). */
const NEIGHBOUR = 2 ** -51;

/**
 * Whether data as the SDK's reader shows it is the data that was given. The reader shows an array of nothing but
 * numbers as base64, which cannot be told from the numbers any more; the bytes in the manifest are right. Recursion is
 * safe: `requireFitAssertions` has bounded the depth.
 */
export function isSameData(given: unknown, read: unknown): boolean {
  if (typeof given === 'number' && typeof read === 'number') {
    return given === read || Math.abs(given - read) <= Math.abs(given) * NEIGHBOUR;
  }
  if (Array.isArray(given)) return isSameArray(given, read);
  if (typeof given !== 'object' || given === null || typeof read !== 'object' || read === null) return given === read;
  const keys = Object.keys(given);
  return (
    !Array.isArray(read) &&
    keys.length === Object.keys(read).length &&
    keys.every((key) => Object.hasOwn(read, key) && isSameData(propertyOf(given, key), propertyOf(read, key)))
  );
}

function isSameArray(given: readonly unknown[], read: unknown): boolean {
  if (!Array.isArray(read)) return typeof read === 'string' && given.every((item) => typeof item === 'number');
  return given.length === read.length && given.every((item, index) => isSameData(item, read[index]));
}

/** A key named "__proto__" is a key like any other. */
function propertyOf(object: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(object, key)?.value;
}
