import { Builder, type JsCallbackSignerConfig, Reader } from '@contentauth/c2pa-node';
import { awaitNativeCall } from './native-calls.ts';

// The only file that imports the SDK. Every call states every setting that guards the service: above all, nothing is
// ever fetched because a file names an address.

const VERIFY = { remote_manifest_fetch: false, ocsp_fetch: false, verify_after_sign: false } as const;
const BUILDER = { thumbnail: { enabled: false } } as const;
const VALIDATING = { verify: { ...VERIFY, verify_after_reading: true }, builder: BUILDER } as const;
const NOT_VALIDATING = { verify: { ...VERIFY, verify_after_reading: false }, builder: BUILDER } as const;

/** An asset without content, which takes a hard binding of any kind: the real asset is bound by our own hash. */
const STAND_IN = { buffer: Buffer.alloc(0), mimeType: 'application/octet-stream' };

export const MANIFEST_STORE_TYPE = 'application/c2pa';

/** ISO base media files have more media types than the SDK knows; it reads them all alike. */
const SDK_MEDIA_TYPES: Readonly<Record<string, string>> = {
  'video/3gpp': 'video/mp4',
  'video/3gpp2': 'video/mp4',
  'audio/3gpp': 'audio/mp4',
  'audio/x-m4a': 'audio/mp4',
  'video/x-m4v': 'video/mp4',
};

/** How a manifest is signed: the SDK wraps what `sign` returns; `call.tsaUrl` adds an RFC 3161 time-stamp. */
export interface SdkSignature {
  readonly call: JsCallbackSignerConfig;
  sign(data: Buffer): Promise<Buffer>;
}

/** A manifest in the SDK's terms, and the byte resources it refers to by identifier. */
export interface ManifestDefinition {
  readonly json: Readonly<Record<string, unknown>>;
  readonly resources: ReadonlyMap<string, Uint8Array>;
}

/** One entry of a validation report. */
export interface Finding {
  readonly code: string;
  /** What of the manifest store it is about. */
  readonly url?: string;
  /** The reader's own words. */
  readonly explanation?: string;
}

/** The findings about one manifest, by weight. */
export interface Findings {
  readonly success: readonly Finding[];
  readonly informational: readonly Finding[];
  readonly failure: readonly Finding[];
}

/** What the reader found of an asset and its manifest. */
export interface ValidationResults {
  readonly activeManifest?: Findings;
}

/** A manifest as the SDK's reader shows it, as far as it is used here. */
export interface ReportedManifest {
  readonly assertions?: readonly { readonly label: string; readonly data: unknown }[];
  readonly ingredients?: readonly { readonly manifest_data?: { readonly identifier: string } }[];
}

/** What the SDK's reader says of an asset, as far as it is used here. */
export interface ManifestReport {
  readonly active_manifest?: string;
  readonly manifests: Readonly<Record<string, ReportedManifest>>;
  readonly validation_results?: ValidationResults;
}

/** An ingredient as the SDK read it. */
export type IngredientJson = Readonly<Record<string, unknown>> & {
  readonly active_manifest?: string;
  readonly validation_results?: ValidationResults;
};

/** A file, or bytes, with a media type. */
export type SdkAsset =
  | { readonly path: string; readonly mediaType: string }
  | { readonly bytes: Uint8Array; readonly mediaType: string };

/** Builds and signs a manifest that is embedded nowhere; returns the manifest store. Rejects with the SDK's own error. */
export async function signManifest(
  definition: ManifestDefinition,
  signature: SdkSignature,
  signal: AbortSignal,
): Promise<Buffer> {
  return signBuilder(await builderOf(definition, signal), signature, signal);
}

/**
 * Has the SDK read an asset as an ingredient, validated or not, and signs a manifest around it to see whether it can be
 * carried. Returns the ingredient as it was read, and that manifest store.
 */
export async function signIngredient(
  definition: ManifestDefinition,
  ingredient: Readonly<Record<string, unknown>>,
  asset: SdkAsset,
  isValidated: boolean,
  signature: SdkSignature,
  signal: AbortSignal,
): Promise<{ ingredient: IngredientJson; store: Buffer }> {
  const builder = await builderOf(definition, signal, isValidated ? VALIDATING : NOT_VALIDATING);
  await awaitNativeCall(() => builder.addIngredient(JSON.stringify(ingredient), sdkAsset(asset)), signal);
  const read = builder.getManifestDefinition().ingredients?.[0] as IngredientJson;
  return { ingredient: read, store: await signBuilder(builder, signature, signal) };
}

/** Reads what a file or a manifest store says of itself; null where it has no manifest. */
export async function readReport(asset: SdkAsset, signal: AbortSignal): Promise<ManifestReport | null> {
  const reader = await awaitNativeCall(() => Reader.fromAsset(sdkAsset(asset), VALIDATING), signal);
  return reader === null ? null : (reader.json() as ManifestReport);
}

/** The manifest store of the first ingredient of a manifest store's active manifest; null where it has none. */
export async function ingredientStoreOf(store: Uint8Array, signal: AbortSignal): Promise<Buffer | null> {
  const reader = await awaitNativeCall(() => Reader.fromAsset(storeAsset(store), NOT_VALIDATING), signal);
  const report = reader?.json() as ManifestReport | undefined;
  const identifier = report?.manifests[report.active_manifest ?? '']?.ingredients?.[0]?.manifest_data?.identifier;
  if (reader == null || identifier === undefined) return null;
  const { buffer } = await awaitNativeCall(() => reader.resourceToAsset(identifier, { buffer: null }), signal);
  return buffer;
}

/** The label of a manifest store's active manifest. Rejects with the SDK's own error where it is no manifest store. */
export async function activeManifestOf(store: Uint8Array, signal: AbortSignal): Promise<string | null> {
  const reader = await awaitNativeCall(() => Reader.fromAsset(storeAsset(store), NOT_VALIDATING), signal);
  return (reader?.json() as ManifestReport | undefined)?.active_manifest ?? null;
}

async function builderOf(
  { json, resources }: ManifestDefinition,
  signal: AbortSignal,
  settings: typeof VALIDATING | typeof NOT_VALIDATING = VALIDATING,
): Promise<Builder> {
  const builder = Builder.withJson(json as never, settings);
  builder.setNoEmbed(true);
  for (const [identifier, bytes] of resources) {
    await awaitNativeCall(() => builder.addResource(identifier, storeAsset(bytes)), signal);
  }
  return builder;
}

/** `signConfigAsync`, because a `CallbackSigner` object would keep the process alive until it is collected. */
function signBuilder(builder: Builder, signature: SdkSignature, signal: AbortSignal): Promise<Buffer> {
  return awaitNativeCall(
    () => builder.signConfigAsync(signature.sign, signature.call, STAND_IN, { buffer: null }),
    signal,
  );
}

function sdkAsset(asset: SdkAsset): { path: string; mimeType: string } | { buffer: Buffer; mimeType: string } {
  const mimeType = SDK_MEDIA_TYPES[asset.mediaType] ?? asset.mediaType;
  return 'path' in asset ? { path: asset.path, mimeType } : { buffer: Buffer.from(asset.bytes), mimeType };
}

function storeAsset(store: Uint8Array): { buffer: Buffer; mimeType: string } {
  return { buffer: Buffer.from(store), mimeType: MANIFEST_STORE_TYPE };
}
