import type { ByteSource } from '#bytes/byte-source.ts';
import type { Warning } from '#errors/warning.ts';
import type { EmbeddingPlan, HardBinding } from './hard-binding.ts';
import type { MerkleBox } from './isobmff/merkle-box.ts';

/**
 * Handler of one container format: recognises it, reads its layout, and plans the output with a manifest. The steps
 * of a further format stand at the end of ARCHITECTURE.md. A handler does no I/O but reading headers and tables
 * through the source.
 *
 * Obligations, which `test/formats/format-handler-contract.ts` checks for every handler:
 * - `readLayout` takes bounded time and memory whatever the bytes are, and refuses with an AppError that names the
 *   box, chunk or frame and its offset;
 * - the plan's output has every byte of media unchanged, with every offset that the container stores adjusted;
 * - an embedded manifest is replaced, never kept beside the new one;
 * - the plan has exactly one hole of `manifestSizeBytes`, for the manifest, which fills it exactly.
 */
export interface FormatHandler<Layout extends MediaLayout = MediaLayout> {
  /** Short name for logs and errors: `isobmff`, `riff`, `id3`. */
  readonly name: string;
  /** Containers of this format as people call them, such as `MP4` and `MOV`, for messages. */
  readonly containers: readonly string[];
  /**
   * IANA media type by which the official reader knows the format. It stands for files whose layout cannot be read: the
   * reader finds manifests by the structure of a container, not by what it holds.
   */
  readonly mediaType: string;
  /** Extensions of the file names that requests may give for this format. */
  readonly nameExtensions: NameExtensions;
  /**
   * Tells whether a file starts like this format. `head` is the start of the file: at most `HEAD_SIZE_BYTES`, or at
   * most `LONG_HEAD_SIZE_BYTES` where no format matches the shorter head.
   */
  matches(head: Uint8Array): boolean;
  /**
   * Reads what planning needs: headers and tables, never media. Throws an AppError for a file that cannot be signed.
   */
  readLayout(source: ByteSource, signal: AbortSignal): Promise<Layout>;
  /**
   * Reads a file that `readLayout` refuses because it cannot be signed, as far as verification needs it. Returns null where it is none
   * of the format, and throws as `readLayout` does. Absent where all that can be read can be signed.
   */
  readUnsignable?(source: ByteSource, signal: AbortSignal): Promise<ReadableLayout | null>;
  /** Returns a hard binding of the size that the plan's `binding` has for this layout: it is measured. */
  placeholderBinding(layout: Layout): HardBinding;
  /**
   * Plans the output with a hole of `manifestSizeBytes`. Pure. Throws an AppError where a size or offset does not fit.
   */
  planEmbedding(layout: Layout, manifestSizeBytes: number): EmbeddingPlan;
}

/**
 * File name extensions, lower case without dot, by what a file with such a name holds. A request is refused early by
 * them; afterwards only the bytes of the file decide.
 */
interface NameExtensions {
  /** Never video. */
  readonly audio: readonly string[];
  /** Never audio alone. */
  readonly video: readonly string[];
  /** Video, or audio alone. */
  readonly either: readonly string[];
}

/** Number of bytes from the start of a file that `matches` gets at first; fewer where the file is shorter. */
export const HEAD_SIZE_BYTES = 64 * 1024;
/** Number of bytes of the second attempt: the first frame of MPEG audio may follow up to 1 MiB of garbage. */
export const LONG_HEAD_SIZE_BYTES = 1088 * 1024;

/** Box of a file by what a hash that leaves it out calls it. */
export interface StrayBox {
  readonly type: string;
  /** Extended type of a `uuid` box in hexadecimal, which stands behind its header; null for other boxes. */
  readonly boxId: string | null;
  readonly headerSizeBytes: number;
}

/** Byte range of the source. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** Box, chunk or frame of C2PA, header included: all that a hash may leave out of a file for its manifest. */
export interface ManifestElement extends ByteRange {
  /**
   * Bytes behind its header up to its end: a manifest store (JUMBF), then zeros. Null where readers find no store in it, or
   * not all of them the same one.
   */
  readonly content: ByteRange | null;
}

/** Returns the elements of a format with one manifest store in a file. Of several stores, readers take different ones. */
export function onlyReadableAlone(elements: readonly ManifestElement[]): readonly ManifestElement[] {
  return elements.length > 1 ? elements.map((element) => ({ ...element, content: null })) : elements;
}

/** Properties of a file that every handler finds, and other modules use. */
export interface MediaLayout {
  /** IANA media type of the file, by its bytes, such as `video/mp4`, `audio/mp4`, `video/quicktime` or `audio/wav`. */
  readonly mediaType: string;
  /** File name extensions, lower case without dot, that fit these bytes; the first is the usual one. */
  readonly extensions: readonly [string, ...string[]];
  /** True where there is at least one video track; a cover picture is none. */
  readonly hasVideo: boolean;
  /** Byte range of the embedded C2PA manifest store (JUMBF) in the source; null where there is none. */
  readonly manifest: ByteRange | null;
  /** Boxes, chunks or frames of C2PA, with a manifest or without; a Merkle box is none. */
  readonly elements: readonly ManifestElement[];
  /** Merkle boxes, in order. Absent where formats have none. */
  readonly merkleBoxes?: readonly MerkleBox[];
  /** Boxes of media outside of fragments, in order. Absent where formats have none. */
  readonly mediaBoxes?: readonly ByteRange[];
  /** Byte range of the XMP packet in the source, which may name a remote manifest; null where the format has none. */
  readonly xmp: ByteRange | null;
  /** Tells whether players find media in bytes of an element at an offset. Absent where they do not look into elements. */
  holdsMedia?(bytes: Uint8Array, offset: number): boolean;
  /** Tells whether an index of the file leads players into a range of it. Absent where formats have no such index. */
  leadsInto?(range: ByteRange, source: ByteSource, signal: AbortSignal): Promise<boolean>;
  /** Boxes beside those for media in which players find media all the same; a hash may leave them out. */
  readonly strayMedia?: readonly StrayBox[];
  /** The box with which the file begins: players tell its container by that. Absent where formats have none. */
  readonly firstBox?: StrayBox;
  /** True where readers and players find different boxes in the file. Absent where formats have none. */
  readonly isBroken?: boolean;
  /** True where players may read the file as text, which names other files, by what stands before its media. */
  readonly startsLikeText?: boolean;
  /** Warnings for the result of the input. */
  readonly warnings?: readonly Warning[];
}

/** The part of a layout that verification needs. */
export type ReadableLayout = Omit<MediaLayout, 'extensions' | 'hasVideo'>;
