import type { Warning } from '#errors/warning.ts';
import type { HardBinding } from '#formats/format-handler.ts';
import type { ValidationResults } from '../sdk.ts';

/** A custom assertion as the caller gave it: any JSON value under a label. */
export interface CustomAssertion {
  readonly label: string;
  readonly data: unknown;
}

/** Where an ingredient of the new manifest comes from. */
export type IngredientSource =
  /** An opaque token; nothing is resolved. */
  | { readonly kind: 'reference'; readonly reference: string }
  /** A file without a manifest of its own: its bytes are not looked at. */
  | { readonly kind: 'plain'; readonly title: string; readonly mediaType: string }
  /** A file on this host that carries a manifest, or may: the SDK reads it. */
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly title: string;
      readonly mediaType: string;
      /** Its manifest store, where it is known where that stands: what reading it costs is told from it. */
      readonly manifest?: { readonly sizeBytes: number; read(signal: AbortSignal): Promise<Uint8Array> };
      /** Rejects where the file is no longer what was opened: asked for when the SDK has read it. */
      readonly checkUnchanged?: (signal: AbortSignal) => Promise<void>;
    }
  /** A manifest store on its own, with the validation results of whoever read it in its place (publications). */
  | {
      readonly kind: 'manifest-store';
      readonly title: string;
      readonly mediaType: string;
      readonly manifestStore: Uint8Array;
      readonly validationResults: ValidationResults | null;
    };

/** What happened to the parent, beside being opened. `c2pa.opened` and `c2pa.placed` are always added by the author. */
export type RecordedAction = 'c2pa.repackaged' | 'c2pa.transcoded';

/** Everything a manifest says apart from its hard binding. */
export interface ManifestRequest {
  /** Title of the signed asset (`dc:title`). */
  readonly title: string;
  readonly mediaType: string;
  readonly assertions: readonly CustomAssertion[];
  /** The one `parentOf` ingredient. */
  readonly parent: IngredientSource;
  /** `componentOf` ingredients, each with a `c2pa.placed` action. */
  readonly components: readonly IngredientSource[];
  readonly actions: readonly RecordedAction[];
  /**
   * True only where the source is the parent and nothing but our own actions lies between (decisions.md). The manifest says
   * so only where nothing is amiss with its ingredients either.
   */
  readonly allActionsIncluded: boolean;
}

/** Makes manifests with the official SDK and the configured identity. The only way to a signature. */
export interface ManifestAuthor {
  /**
   * Reads the ingredients and freezes everything but the hard binding. Ingredients that cannot be read whole are
   * attached as far as they can be, with a warning.
   */
  draft(request: ManifestRequest, signal: AbortSignal): Promise<ManifestDraft>;
}

/** A manifest that lacks only its hard binding. */
export interface ManifestDraft {
  /** For the result entry's `warnings`. */
  readonly warnings: readonly Warning[];
  /** An upper bound of the signed manifest's size in bytes, given a binding no smaller than the final one. */
  measure(placeholder: HardBinding, signal: AbortSignal): Promise<number>;
  /** The signed manifest store (JUMBF). */
  sign(binding: HardBinding, signal: AbortSignal): Promise<Uint8Array>;
}

/** Reads a finished output back with the official reader. */
export interface OutputReader {
  /**
   * Rejects unless the manifest is valid. One finding is tolerated: that the active manifest's signing credential is
   * not on a trust list; findings about ingredients are theirs.
   */
  readBack(path: string, mediaType: string, signal: AbortSignal): Promise<void>;
}
