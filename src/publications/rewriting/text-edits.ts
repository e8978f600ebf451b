import assert from 'node:assert/strict';

/** Characters `[start, end)` of a text that are replaced. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Applies edits that do not overlap, an insertion before a replacement at the same place; all else stays. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  const pieces: string[] = [];
  let from = 0;
  for (const { start, end, replacement } of edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    assert(start >= from && end >= start, 'edits do not overlap');
    pieces.push(text.slice(from, start), replacement);
    from = end;
  }
  return pieces.join('') + text.slice(from);
}
