import { inheritAttributes, stringToMpdXml, toPlaylists } from 'mpd-parser';
import { describeSegment, PLAYLIST_URL, type Reading, type ReadPart } from './reading.ts';

/** Reads an MPD with mpd-parser, that of video.js; null where it refuses it. */
export function readMpdParser(text: string): Reading | null {
  // It does not subtract the start of a period from that of the next one, or from the end of all (ISO/IEC 23009-1 §5.3.2.1).
  const periods = text.match(/<Period\b[^>]*/g) ?? [];
  const isFirst = (period: string): boolean => periods.length === 1 && !/\sstart\s*=\s*.P.*[1-9]/.test(period);
  if (periods.some((period) => !/\sduration\s*=/.test(period) && !isFirst(period))) return null;
  // It repeats segments until the end of all periods, not of their own (§5.3.9.6).
  if (periods.length > 1 && /\sr\s*=\s*.-1/.test(text)) return null;
  // Like most players it rounds times that do not fit a double, with which some live streams name their segments.
  if (/\d{16}/.test(text)) return null;
  const representations = silently(() => {
    const { representationInfo } = inheritAttributes(stringToMpdXml(text), { manifestUri: PLAYLIST_URL });
    const addressed = representationInfo.filter(
      ({ segmentInfo }) => 'template' in segmentInfo || 'list' in segmentInfo,
    );
    return addressed.map((each) => ({
      id: String(each.attributes['id'] ?? ''),
      segments: (toPlaylists([each])[0]?.segments ?? []).map((segment) =>
        // It takes the base address for an init segment where no Initialization says one.
        describeSegment(partOf(segment), segment.map && hasInit(each.segmentInfo) ? partOf(segment.map) : undefined),
      ),
    }));
  });
  return representations === null ? null : { kind: 'mpd', representations };
}

function hasInit({ template, list }: Readonly<Record<string, Readonly<Record<string, unknown>>>>): boolean {
  const { sourceURL, range } = Object((template ?? list)?.['initialization']) as Record<string, unknown>;
  return sourceURL !== undefined || range !== undefined;
}

interface ResolvedPart {
  readonly resolvedUri: string;
  readonly byterange?: { readonly offset: number | bigint; readonly length: number | bigint };
}

function partOf({ resolvedUri, byterange }: ResolvedPart): ReadPart {
  const range = byterange && { offset: Number(byterange.offset), length: Number(byterange.length) };
  return { url: resolvedUri, range };
}

/** Runs what refuses by throwing, and writes warnings to the console. */
function silently<Result>(read: () => Result): Result | null {
  const { warn, error } = console;
  Object.assign(console, { warn: () => undefined, error: () => undefined });
  try {
    return read();
  } catch {
    return null;
  } finally {
    Object.assign(console, { warn, error });
  }
}
