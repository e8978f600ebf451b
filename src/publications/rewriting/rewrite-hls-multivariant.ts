import type { FolderIndex } from '../reading/folder-index.ts';
import { hlsAttribute, replaceHlsAttribute } from '../reading/hls-attributes.ts';
import { addressesBelow, type HlsMultivariant, hlsLines } from '../reading/hls-playlist.ts';
import { type AddedRates, NOTHING_ADDED } from './added-rates.ts';

/** Attributes by which a variant names the groups that are played along with it. */
const GROUP_ATTRIBUTES = ['AUDIO', 'VIDEO', 'SUBTITLES'] as const;

/**
 * Raises BANDWIDTH and AVERAGE-BANDWIDTH by what signing added to each variant: to its own playlist, and to the largest
 * member of every group it plays along. `ratesOf` tells it for a media playlist by path.
 */
export function rewriteHlsMultivariant(
  playlist: HlsMultivariant,
  index: FolderIndex,
  ratesOf: (path: string) => AddedRates,
): string {
  const lines = hlsLines(playlist.path, playlist.text);
  const addresses = addressesBelow(lines);
  const base = index.baseOf(playlist.path);
  const ratesOfReference = (uri: string | undefined, line: number): AddedRates =>
    uri === undefined ? NOTHING_ADDED : ratesOf(index.locate(base, uri, { playlist: playlist.path, line }));

  const groups = new Map<string, AddedRates>();
  for (const [at, line] of lines.entries()) {
    if (!line.startsWith('#EXT-X-MEDIA:')) continue;
    const key = `${hlsAttribute(line, 'TYPE')} ${hlsAttribute(line, 'GROUP-ID')}`;
    groups.set(key, larger(groups.get(key) ?? NOTHING_ADDED, ratesOfReference(hlsAttribute(line, 'URI'), at + 1)));
  }
  const rewritten = playlist.text.split('\n').map((original, at) => {
    const line = lines[at] as string;
    if (line.startsWith('#EXT-X-I-FRAME-STREAM-INF:'))
      return raise(original, ratesOfReference(hlsAttribute(line, 'URI'), at + 1));
    if (!line.startsWith('#EXT-X-STREAM-INF:')) return original;
    const addressAt = addresses[at] as number;
    const alongside = GROUP_ATTRIBUTES.map(
      (name) => groups.get(`${name} ${hlsAttribute(line, name)}`) ?? NOTHING_ADDED,
    );
    return raise(original, sum([ratesOfReference(lines[addressAt], addressAt + 1), ...alongside]));
  });
  return rewritten.join('\n');
}

function raise(line: string, { peak, average }: AddedRates): string {
  return raiseAttribute(raiseAttribute(line, 'BANDWIDTH', peak), 'AVERAGE-BANDWIDTH', average);
}

function raiseAttribute(line: string, name: string, added: number): string {
  const value = hlsAttribute(line, name);
  if (added === 0 || value === undefined || !/^\d{1,15}$/.test(value)) return line;
  return replaceHlsAttribute(line, name, String(Number(value) + added));
}

function larger(first: AddedRates, second: AddedRates): AddedRates {
  return { peak: Math.max(first.peak, second.peak), average: Math.max(first.average, second.average) };
}

function sum(rates: readonly AddedRates[]): AddedRates {
  return rates.reduce(
    (total, { peak, average }) => ({ peak: total.peak + peak, average: total.average + average }),
    NOTHING_ADDED,
  );
}
