/** Names that a message lists one by one; the others are counted. */
const MAX_NAMES_LISTED = 10;

/** The first of many names, and how many there are: what a message and its details hold of them. */
export interface NameSample {
  readonly names: readonly string[];
  readonly count: number;
}

export function sampleOfNames(all: readonly string[]): NameSample {
  return { names: all.slice(0, MAX_NAMES_LISTED), count: all.length };
}

/** Joins quoted names for a sentence: `"a", "b" and 3 more`. */
export function listNames({ names, count }: NameSample): string {
  const more = count > names.length ? ` and ${count - names.length} more` : '';
  return `${names.map((name) => `"${name}"`).join(', ')}${more}`;
}
