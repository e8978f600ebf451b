import type { ByteSource } from '#bytes/byte-source.ts';
import type { PlanDigests, SplicePlan } from '#bytes/splice-plan.ts';
import type { Warning } from '#errors/warning.ts';

/**
 * One container format: how it is recognised, laid out, and given a manifest. Adding a format is one folder with a
 * handler and one line in `formats.ts`. Handlers do no I/O but reading headers and tables through the source.
 *
 * Obligations (test/formats/format-handler-contract.ts runs them on every handler):
 * - `readLayout` reads in bounded time and memory whatever the bytes say, and refuses with an AppError that names the
 *   box, chunk or frame and its offset;
 * - the plan's output holds every byte of media unchanged, with every offset that the container stores adjusted;
 * - an embedded manifest is replaced, never kept beside the new one;
 * - the plan has exactly one hole, which receives `manifest ‖ zeros`, `manifestSizeBytes` in all.
 */
export interface FormatHandler<Layout extends MediaLayout = MediaLayout> {
  /** Short name for logs and errors: `isobmff`, `riff`, `id3`, `flac`. */
  readonly name: string;
  /**
   * Whether the file starts like this format. `head` holds the first bytes, at most `HEAD_SIZE_BYTES`; where no format
   * matches these, at most `LONG_HEAD_SIZE_BYTES`.
   */
  matches(head: Uint8Array): boolean;
  readLayout(source: ByteSource, signal: AbortSignal): Promise<Layout>;
  /** A hard binding of the largest size that `planEmbedding(...).binding` can return for this layout: for measuring. */
  placeholderBinding(layout: Layout): HardBinding;
  planEmbedding(layout: Layout, manifestSizeBytes: number): EmbeddingPlan;
}

/** How many bytes from the start `matches` gets to see; fewer where the file is shorter. */
export const HEAD_SIZE_BYTES = 64 * 1024;
/** Of MPEG audio, the first frame may stand behind up to a MiB of something else; the frames after it must be in sight. */
export const LONG_HEAD_SIZE_BYTES = 1088 * 1024;

/** What a handler found out about a file, as far as other rooms may know it. */
export interface MediaLayout {
  /** The IANA media type of the file as it really is, such as `video/mp4`, `audio/mp4`, `video/quicktime`, `audio/wav`. */
  readonly mediaType: string;
  /** The file name extensions, lower case without dot, that fit these bytes; the first is the usual one. */
  readonly extensions: readonly [string, ...string[]];
  /** Whether there is at least one video track (a cover picture is none). */
  readonly hasVideo: boolean;
  /** The embedded C2PA manifest store as a byte range of the source (JUMBF bytes alone), if there is one. */
  readonly manifest: { readonly offset: number; readonly length: number } | null;
  /** XMP packet of the source as a byte range, if the format says where it is: it may name a remote manifest. */
  readonly xmp: { readonly offset: number; readonly length: number } | null;
  /** What whoever signs the file should know of it. */
  readonly warnings?: readonly Warning[];
}

/** The signed output of one file: what to write, and the binding that fits it once it has been hashed. */
export interface EmbeddingPlan {
  readonly plan: SplicePlan;
  /** The hard binding assertion over the output, from the digests that `executePlan` returned for `plan`. */
  binding(digests: PlanDigests): HardBinding;
}

/** A hard binding assertion (C2PA 2.2, §9.2); byte strings are arrays of numbers, as the SDK wants them. */
export interface HardBinding {
  readonly label: 'c2pa.hash.bmff.v3' | 'c2pa.hash.data';
  readonly data: Readonly<Record<string, unknown>>;
}
