import { type LocalSource, openedPathOf } from '#bytes/byte-source.ts';
import type { Finding, ManifestReport, ValidationResults } from './validation-report.ts';

/** A custom assertion as the caller gave it: any JSON value under a label. */
export interface CustomAssertion {
  readonly label: string;
  readonly data: unknown;
}

/** An assertion of this service that is made of the output: byte strings are arrays of numbers, as the SDK expects. */
export interface LateAssertion {
  readonly label: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The namespace of the assertions that this service alone makes. */
export const OWN_NAMESPACE = 'com.attestream.';

/** The source of an ingredient of the new manifest. */
export type IngredientSource =
  /** An opaque token, which is not resolved. */
  | { readonly kind: 'reference'; readonly reference: string }
  /** A file without a manifest of its own. Its bytes are not read. */
  | {
      readonly kind: 'plain';
      readonly title: string;
      readonly mediaType: string;
      /** The identifier that its XMP packet gives it (`xmpMM:InstanceID`), where it has one. */
      readonly instanceId?: string;
    }
  /** A file on this host that carries, or may carry, a manifest. The SDK reads it. */
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly title: string;
      readonly mediaType: string;
      /** Its manifest store, where its position is known; the cost of validating the file is computed from it. */
      readonly manifest?: { readonly sizeBytes: number; read(signal: AbortSignal): Promise<Uint8Array> };
      /** Returns the findings by which `verify` refuses the file although the SDK's reading of it does not. */
      readonly judge?: (report: ManifestReport, store: Uint8Array, signal: AbortSignal) => Promise<readonly Finding[]>;
      /** Rejects where the file has changed since it was opened; called when the SDK has read it. */
      readonly checkUnchanged?: (signal: AbortSignal) => Promise<void>;
    }
  /** A manifest store without its asset, with the validation results of the reader that saw both (publications). */
  | {
      readonly kind: 'manifest-store';
      readonly title: string;
      readonly mediaType: string;
      readonly manifestStore: Uint8Array;
      readonly validationResults: ValidationResults | null;
    };

/** Describes a file that must stay open until the SDK has read it; what was opened is checked for changes after that. */
export function fileIngredient(
  source: LocalSource,
  described: { readonly title: string; readonly mediaType: string },
): IngredientSource & { readonly kind: 'file' } {
  const checkUnchanged = async (signal: AbortSignal): Promise<void> => source.checkUnchanged?.(signal);
  return { kind: 'file', path: openedPathOf(source), ...described, checkUnchanged };
}

/** The origin of media that were made anew, without a parent. */
export interface Creation {
  readonly kind: 'created';
  /** The address of a term of IPTC or C2PA (C2PA 2.4 §18.15.4.5). */
  readonly digitalSourceType: string;
}

/** An action that the caller states, as `action-item-map-v2` of C2PA 2.4 §18.15.12 has it. */
export interface StatedAction {
  readonly action: string;
  /** RFC 3339. */
  readonly when?: string;
  readonly description?: string;
  readonly digitalSourceType?: string;
  readonly softwareAgent?: { readonly name: string; readonly version?: string; readonly operating_system?: string };
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** An action of this service on some of the ingredients. */
export interface RecordedAction {
  readonly action: 'c2pa.repackaged' | 'c2pa.transcoded';
  /** The ingredients that it was performed on, as they stand in the request. */
  readonly on: readonly IngredientSource[];
  readonly description?: string;
}

/** The contents of a manifest apart from its hard binding. */
export interface ManifestRequest {
  /** The name of the identity that signs it. */
  readonly identity: string;
  /** Title of the signed asset (`dc:title`). */
  readonly title: string;
  readonly mediaType: string;
  /** The identifier of the signed asset, as long as one of `newInstanceId`, which is the default. */
  readonly instanceId?: string;
  readonly assertions: readonly CustomAssertion[];
  /** The one `parentOf` ingredient, which is opened first; or how the media were created. */
  readonly origin: IngredientSource | Creation;
  /** `componentOf` ingredients, each with a `c2pa.placed` action. */
  readonly components: readonly IngredientSource[];
  /** `inputTo` ingredients: further sources of what was made, whose content is unchanged. */
  readonly inputs: readonly IngredientSource[];
  readonly statedActions: readonly StatedAction[];
  readonly actions: readonly RecordedAction[];
  /**
   * True only where nothing else lies between the origin and the output. The manifest states it only where its ingredients
   * have no warnings either.
   */
  readonly allActionsIncluded: boolean;
}
