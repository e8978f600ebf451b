import type { ProbedStream } from '../probing/probed-file.ts';

/** Short names of codecs, by mediabunny's. */
const CODEC_NAMES: Readonly<Record<string, string>> = { avc: 'h264' };

/** Whether samples are raw, or packed without loss as few players take them, so that they are packaged as FLAC. */
export function becomesFlac(codec: string | null): boolean {
  return codec !== null && (codec.startsWith('pcm') || ['alac', 'alaw', 'ulaw'].includes(codec));
}

/** The short name of a codec as it stands in a rendition's name, after packaging. */
export function codecNameOf({ kind, codec }: ProbedStream): string {
  if (kind === 'text') return 'vtt';
  if (becomesFlac(codec)) return 'flac';
  return CODEC_NAMES[codec ?? ''] ?? codec ?? 'unknown';
}

/** `h264_1080p`: the shorter side of the picture, as people name sizes. */
export function videoName(codec: string, width: number | null, height: number | null): string {
  return width === null || height === null ? codec : `${codec}_${Math.min(width, height)}p`;
}

/** Gives out folders, each once: what comes later under a taken name gets a number. */
export class FolderNames {
  readonly #taken = new Set<string>();

  take(kind: string, name: string): string {
    for (let count = 1; ; count += 1) {
      const folder = `${kind}/${count === 1 ? name : `${name}_${count}`}`;
      if (this.#taken.has(folder.toLowerCase())) continue;
      this.#taken.add(folder.toLowerCase());
      return folder;
    }
  }
}
