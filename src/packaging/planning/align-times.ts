import type { ContainerKind, ProbedFile } from '../probing/probed-file.ts';
import { turnedOver } from '../subtitles/web-vtt.ts';
import type { ChosenStream } from './choose-streams.ts';
import { feedRouteOf } from './stream-routes.ts';

/** Where the times of a stream go, in seconds. */
export interface AlignedTimes {
  /** What is added to them, so that the publication starts at zero. */
  readonly shiftSeconds: number;
  /** Where what its file starts with comes to stand. */
  readonly fileStartSeconds: number;
}

export interface AlignedStream extends ChosenStream, AlignedTimes {
  /** Whether nothing says which time subtitles are in. */
  readonly isAssumed: boolean;
}

/** What starts by less after zero, in seconds, starts in time: frames that are shown late, and priming, do that. */
const LATE_SECONDS = 0.2;

/** Containers whose times may start anywhere. */
const TIMED: ReadonlySet<ContainerKind> = new Set(['mp4', 'quicktime', 'matroska', 'webm', 'mpeg-ts']);

/**
 * Brings streams to one time that starts at zero. Media may start at any time of their own, as recordings do; subtitles count
 * like them, or from the start of the film. `oneTime` are the files that are known to share one: the renditions of a
 * publication. What starts late, and the packager would read itself, goes through ffmpeg, unless it is all there is.
 */
export function alignTimes(chosen: readonly ChosenStream[], oneTime: ReadonlySet<string>): AlignedStream[] {
  const clocks = new Clocks(chosen, oneTime);
  const stays = clocks.count === 1 && chosen.every(({ route }) => route.kind === 'direct');
  return chosen.map((candidate) => {
    const { file, stream, route } = candidate;
    if (stream.kind === 'text') return { ...candidate, ...alignText(candidate, clocks) };
    const zero = stays ? 0 : clocks.zeroOf(file);
    const isMoved = zero > 0 && route.kind === 'direct';
    const moved = isMoved ? { ...candidate, route: feedRouteOf(stream.codec ?? '') } : candidate;
    return { ...moved, shiftSeconds: 0 - zero, fileStartSeconds: Math.max(startOf(file) - zero, 0), isAssumed: false };
  });
}

function alignText(
  { file, stream, route }: ChosenStream,
  clocks: Clocks,
): AlignedTimes & Pick<AlignedStream, 'isAssumed'> {
  const aligned = (shiftSeconds: number, isAssumed = false) => ({ shiftSeconds, fileStartSeconds: 0, isAssumed });
  const reader = route.kind === 'text' ? route.reader : 'file';
  const zero = clocks.zeroOf(file);
  // ffmpeg moves them to zero with the file that they are in.
  if (reader === 'ffmpeg') return aligned(Math.max(startOf(file) - zero, 0));
  if (reader !== 'file') return aligned(0 - zero);
  const { zeroSeconds, startSeconds } = stream;
  if (zeroSeconds !== null) {
    const mapped = clocks.mappedZeroOf(file);
    return aligned(mapped === null ? 0 : turnedOver(zeroSeconds - mapped));
  }
  // Without a map they count like the media (RFC 8216 §3.5), but those that are written by hand do not.
  return clocks.isLate(file) && startSeconds >= zero ? aligned(-zero, true) : aligned(0);
}

/** Where a file starts in its own time, in seconds, by what ffmpeg looks at, too. */
function startOf({ streams }: ProbedFile): number {
  const starts = streams.flatMap(({ kind, startSeconds, undecodableSeconds }) =>
    kind === 'text' ? [] : [startSeconds - undecodableSeconds],
  );
  return starts.length === 0 ? 0 : Math.min(...starts);
}

/** The times that files are in, and where in each of them the publication starts. */
class Clocks {
  readonly #oneTime: ReadonlySet<string>;
  readonly #files: ReadonlyMap<string | null, readonly ProbedFile[]>;

  constructor(chosen: readonly ChosenStream[], oneTime: ReadonlySet<string>) {
    this.#oneTime = oneTime;
    const media = new Set(chosen.filter(({ stream }) => stream.kind !== 'text').map(({ file }) => file));
    this.#files = Map.groupBy(media, (file) => this.#nameOf(file));
  }

  get count(): number {
    return this.#files.size;
  }

  /** When the publication starts in the time of a file. */
  zeroOf(file: ProbedFile): number {
    return this.#zeroOf(this.#nameOf(file));
  }

  /** When it starts in the time of transport streams, which a map counts in; null where there is none. */
  mappedZeroOf(file: ProbedFile): number | null {
    if (this.#oneTime.has(file.path)) return this.#files.has(SHARED) ? this.#zeroOf(SHARED) : null;
    const streams = [...this.#files].filter(([, files]) => files.some(isTransportStream));
    return streams.length === 0 ? null : Math.min(...streams.map(([name]) => this.#zeroOf(name)));
  }

  /** Whether a file is of a publication in MP4 that starts late. */
  isLate(file: ProbedFile): boolean {
    const files = this.#files.get(SHARED) ?? [];
    return this.#oneTime.has(file.path) && !files.some(isTransportStream) && this.#zeroOf(SHARED) > 0;
  }

  #zeroOf(name: string | null): number {
    const files = name === null ? [] : (this.#files.get(name) ?? []);
    const [first] = files;
    if (first === undefined) return 0;
    const start = startOf(first);
    // The time of transport streams starts again every day, maybe between two of them.
    const distanceOf = files.some(isTransportStream) ? turnedOver : (seconds: number) => seconds;
    const zero = Math.max(start + Math.min(...files.map((file) => distanceOf(startOf(file) - start))), 0);
    return zero < LATE_SECONDS && !files.some(isTransportStream) ? 0 : zero;
  }

  /** Transport streams of different recorders have each their own time; null stands for files that have none. */
  #nameOf(file: ProbedFile): string | null {
    if (!TIMED.has(file.container) && !isText(file)) return null;
    if (this.#oneTime.has(file.path)) return SHARED;
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
