import { AppError } from '#errors/app-error.ts';
import { partKey } from '../publication.ts';
import type { FolderIndex } from './folder-index.ts';
import type { RenditionStatement, StatedPart } from './rendition-statement.ts';

interface PlacedPart extends StatedPart {
  readonly playlist: string;
}

/** Refuses byte ranges that pass the end of their file, and parts of one file that overlap without being the same. */
export function checkRanges(statements: readonly RenditionStatement[], index: FolderIndex): void {
  const ranged: PlacedPart[] = [];
  for (const { playlist, init, fragments } of statements) {
    for (const stated of init === null ? fragments : [init, ...fragments]) {
      if (stated.part.range !== null) ranged.push({ ...stated, playlist });
    }
  }
  if (ranged.length === 0) return;
  for (const [file, parts] of Map.groupBy(ranged, ({ part }) => part.path)) {
    refusePastEnd(file, parts, index.sizeOf(file) as number);
    refuseOverlap(file, parts);
  }
  refuseWholeAndParts(statements, new Set(ranged.map(({ part }) => part.path)));
}

function refusePastEnd(file: string, parts: readonly PlacedPart[], sizeBytes: number): void {
  for (const { part, playlist, line } of parts) {
    const end = part.range === null ? 0 : part.range.offset + part.range.length;
    if (end > sizeBytes) throw new AppError('BYTE_RANGE_PAST_END', { playlist, line, file, end, sizeBytes });
  }
}

function refuseOverlap(file: string, parts: readonly PlacedPart[]): void {
  const distinct = [...new Map(parts.map((placed) => [partKey(placed.part), placed])).values()];
  let end = 0;
  for (const { part, playlist, line } of distinct.sort((a, b) => startOf(a) - startOf(b))) {
    const { offset, length } = part.range ?? { offset: 0, length: 0 };
    if (offset < end) throw new AppError('FRAGMENT_RANGES_OVERLAP', { playlist, line, file, offset });
    end = offset + length;
  }
}

function startOf({ part }: PlacedPart): number {
  return part.range?.offset ?? 0;
}

function refuseWholeAndParts(statements: readonly RenditionStatement[], ranged: ReadonlySet<string>): void {
  for (const { playlist, init, fragments } of statements) {
    for (const { part, line } of init === null ? fragments : [init, ...fragments]) {
      if (part.range !== null || !ranged.has(part.path)) continue;
      throw new AppError('FRAGMENT_RANGES_OVERLAP', { playlist, line, file: part.path, offset: 0 });
    }
  }
}
