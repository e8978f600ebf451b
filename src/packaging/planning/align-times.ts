import type { ContainerKind, ProbedFile } from '../probed-file.ts';
import { wrapMpegTime } from '../subtitles/web-vtt.ts';
import type { ChosenStream } from './choose-streams.ts';
import { feedRouteOf } from './stream-routes.ts';

/** Shift of the times of a stream, in seconds. */
interface AlignedTimes {
  /** Seconds added to them, so that the publication starts at zero. */
  readonly shiftSeconds: number;
  /** Time at which the first packet of its file stands in the publication. */
  readonly fileStartSeconds: number;
}

export interface AlignedStream extends ChosenStream, AlignedTimes {
  /** True where the timeline of these subtitles is assumed, because nothing states it. */
  readonly isAssumed: boolean;
}

/** Starts later than zero by less than this, in seconds, are ignored: priming and reordered frames cause them. */
const LATE_SECONDS = 0.2;

/** Containers whose times may start anywhere. */
const TIMED: ReadonlySet<ContainerKind> = new Set(['mp4', 'quicktime', 'matroska', 'webm', 'mpeg-ts']);

/**
 * Shifts streams to one timeline that starts at zero. Media may start at any time of their own, as recordings do; subtitles
 * use the same timeline, or count from the start of the media. `sharedTimeline` are the files that are known to share one:
 * the renditions of a publication. Streams that start late and that the packager would read itself are routed through
 * ffmpeg, unless all streams are such.
 */
export function alignTimes(chosen: readonly ChosenStream[], sharedTimeline: ReadonlySet<string>): AlignedStream[] {
  const timelines = new Timelines(chosen, sharedTimeline);
  const stays = timelines.count === 1 && chosen.every(({ route }) => route.kind === 'direct');
  return chosen.map((candidate) => {
    const { file, stream, route } = candidate;
    if (stream.kind === 'text') return { ...candidate, ...alignText(candidate, timelines) };
    const zero = stays ? 0 : timelines.zeroOf(file);
    const isMoved = zero > 0 && route.kind === 'direct';
    const moved = isMoved ? { ...candidate, route: feedRouteOf(stream.codec ?? '') } : candidate;
    return { ...moved, shiftSeconds: 0 - zero, fileStartSeconds: Math.max(startOf(file) - zero, 0), isAssumed: false };
  });
}

function alignText(
  { file, stream, route }: ChosenStream,
  timelines: Timelines,
): AlignedTimes & Pick<AlignedStream, 'isAssumed'> {
  const aligned = (shiftSeconds: number, isAssumed = false) => ({ shiftSeconds, fileStartSeconds: 0, isAssumed });
  const reader = route.kind === 'text' ? route.reader : 'file';
  const zero = timelines.zeroOf(file);
  // ffmpeg moves them to zero with the file that they are in.
  if (reader === 'ffmpeg') return aligned(Math.max(startOf(file) - zero, 0));
  if (reader !== 'file') return aligned(0 - zero);
  const { zeroSeconds, startSeconds } = stream;
  if (zeroSeconds !== null) {
    const mapped = timelines.mappedZeroOf(file);
    return aligned(mapped === null ? 0 : wrapMpegTime(zeroSeconds - mapped));
  }
  // Without a map they count like the media (RFC 8216 §3.5), but those that are written by hand do not.
  return timelines.isLate(file) && startSeconds >= zero ? aligned(-zero, true) : aligned(0);
}

/** Returns the start of a file on its own timeline, in seconds, counted like ffmpeg does. */
function startOf({ streams }: ProbedFile): number {
  const starts = streams.flatMap(({ kind, startSeconds, undecodableSeconds }) =>
    kind === 'text' ? [] : [startSeconds - undecodableSeconds],
  );
  return starts.length === 0 ? 0 : Math.min(...starts);
}

/** Timelines of the files, and the start of the publication on each of them. */
class Timelines {
  readonly #sharedTimeline: ReadonlySet<string>;
  readonly #files: ReadonlyMap<string | null, readonly ProbedFile[]>;

  constructor(chosen: readonly ChosenStream[], sharedTimeline: ReadonlySet<string>) {
    this.#sharedTimeline = sharedTimeline;
    const media = new Set(chosen.filter(({ stream }) => stream.kind !== 'text').map(({ file }) => file));
    this.#files = Map.groupBy(media, (file) => this.#nameOf(file));
  }

  get count(): number {
    return this.#files.size;
  }

  /** Returns the start of the publication on the timeline of a file. */
  zeroOf(file: ProbedFile): number {
    return this.#zeroOf(this.#nameOf(file));
  }

  /**
   * Returns the start of the publication on the timeline of transport streams, which an X-TIMESTAMP-MAP counts in; null
   * where there is none.
   */
  mappedZeroOf(file: ProbedFile): number | null {
    if (this.#sharedTimeline.has(file.path)) return this.#files.has(SHARED) ? this.#zeroOf(SHARED) : null;
    const streams = [...this.#files].filter(([, files]) => files.some(isTransportStream));
    return streams.length === 0 ? null : Math.min(...streams.map(([name]) => this.#zeroOf(name)));
  }

  /** Returns whether a file belongs to a publication in MP4 that starts late. */
  isLate(file: ProbedFile): boolean {
    const files = this.#files.get(SHARED) ?? [];
    return this.#sharedTimeline.has(file.path) && !files.some(isTransportStream) && this.#zeroOf(SHARED) > 0;
  }

  #zeroOf(name: string | null): number {
    const files = name === null ? [] : (this.#files.get(name) ?? []);
    const [first] = files;
    if (first === undefined) return 0;
    const start = startOf(first);
    // The time of transport streams starts again every day, maybe between two of them.
    const distanceOf = files.some(isTransportStream) ? wrapMpegTime : (seconds: number) => seconds;
    const zero = Math.max(start + Math.min(...files.map((file) => distanceOf(startOf(file) - start))), 0);
    return zero < LATE_SECONDS && !files.some(isTransportStream) ? 0 : zero;
  }

  /** Returns the timeline of a file, null where it has none. Transport streams of different recorders have one each. */
  #nameOf(file: ProbedFile): string | null {
    if (!TIMED.has(file.container) && !isText(file)) return null;
    if (this.#sharedTimeline.has(file.path)) return SHARED;
    return isTransportStream(file) ? file.path : OTHERS;
  }
}

const SHARED = 'shared\0';
const OTHERS = 'others\0';

function isTransportStream({ container }: ProbedFile): boolean {
  return container === 'mpeg-ts';
}

function isText({ streams }: ProbedFile): boolean {
  return streams.every(({ kind }) => kind === 'text');
}
