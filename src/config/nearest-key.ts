import { keyPaths } from './config-schema.ts';

/** The edits that a typo has at most, as a part of the letters of the key without its section, which is right as a rule. */
const MAX_EDITED_PART = 0.4;

/** Returns the key or section that somebody may have meant, also one of the same name in another section; null for none. */
export function nearestKey(given: string): string | null {
  const candidates = keyPaths(given.split('.')).map((key) => ({ key, edits: editsBetween(given, key) }));
  const name = lastName(given);
  const [nearest] = candidates.sort((a, b) => a.edits - b.edits);
  if (nearest !== undefined && nearest.edits <= 2) return nearest.key;
  const sameName = candidates.find(({ key }) => lastName(key) === name);
  if (sameName !== undefined) return sameName.key;
  return nearest !== undefined && nearest.edits <= name.length * MAX_EDITED_PART ? nearest.key : null;
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** Returns the letters to insert, delete or replace that make one text of the other (Levenshtein distance). */
function editsBetween(first: string, second: string): number {
  let row = Array.from({ length: second.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...first].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...second].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
