import {
  Builder,
  CallbackCredentialHolder,
  CallbackSigner,
  IdentityAssertionBuilder,
  IdentityAssertionSigner,
  type JsCallbackSignerConfig,
  Reader,
} from '@contentauth/c2pa-node';
import { awaitNativeCall } from '#concurrency/race-abort.ts';
import type { ManifestReport, ValidationResults } from '../validation-report.ts';

// The only file that imports the native SDK. Every call states every setting that protects the service: nothing that a
// file names is ever fetched. Identity assertions are left alone, whose issuers this reader would ask over the network
// (`describe-identities.ts`).

const VERIFY = { remote_manifest_fetch: false, ocsp_fetch: false, verify_after_sign: false } as const;
const OTHERS = { core: { decode_identity_assertions: false }, builder: { thumbnail: { enabled: false } } } as const;
const VALIDATING = { verify: { ...VERIFY, verify_after_reading: true }, ...OTHERS } as const;
const NOT_VALIDATING = { verify: { ...VERIFY, verify_after_reading: false }, ...OTHERS } as const;

/** An asset without content, which accepts a hard binding of any kind. The real asset is bound by our own hash. */
const STAND_IN = { buffer: Buffer.alloc(0), mimeType: 'application/octet-stream' };

/** The media type of a manifest store. */
export const MANIFEST_STORE_TYPE = 'application/c2pa';

/** Media types of ISO base media files that the SDK does not know, with those under which it reads them. */
const SDK_MEDIA_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'video/3gpp': 'video/mp4',
    'video/3gpp2': 'video/mp4',
    'audio/3gpp': 'audio/mp4',
    'audio/x-m4a': 'audio/mp4',
    'video/x-m4v': 'video/mp4',
  }),
);

/** The signature of a manifest: the SDK wraps what `sign` returns. `call.tsaUrl` adds an RFC 3161 time-stamp. */
export interface SdkSignature {
  readonly call: JsCallbackSignerConfig;
  sign(data: Buffer): Promise<Buffer>;
  readonly identityAssertion?: IdentityAssertion | undefined;
}

/** A CAWG identity assertion, which the SDK adds to a manifest once the assertions are known that it refers to. */
export interface IdentityAssertion {
  /** The size of its content, which the SDK pads. */
  readonly sizeBytes: number;
  readonly role: string;
  /** Labels of assertions that it refers to beside the hard binding. */
  readonly referencedLabels: readonly string[];
  /** Returns a tagged COSE_Sign1 structure for a payload, which it leaves out. */
  sign(payload: SignerPayload): Promise<Buffer>;
}

/** The payload of an identity assertion's signature (CAWG Identity Assertion 1.2 §5.1), as the SDK hands it out. */
export interface SignerPayload {
  readonly referenced_assertions: readonly {
    readonly url: string;
    readonly alg?: string | null;
    readonly hash: Uint8Array | readonly number[];
  }[];
  readonly sig_type: string;
  readonly role?: readonly string[];
}

/** A manifest in the SDK's terms, and the resources that it refers to by identifier. */
export interface ManifestDefinition {
  readonly json: Readonly<Record<string, unknown>>;
  /** Labels of assertions that the signer vouches for, without their versions, beside those that `json` marks as created. */
  readonly createdLabels: readonly string[];
  readonly resources: ReadonlyMap<string, Uint8Array>;
}

/** An ingredient as the SDK read it. */
export type IngredientJson = Readonly<Record<string, unknown>> & {
  readonly active_manifest?: string;
  readonly validation_results?: ValidationResults;
};

/** A file of this host, or bytes. */
export type SdkAsset = ({ readonly path: string } | { readonly bytes: Uint8Array }) & {
  readonly mediaType: string;
  /** Its manifest store, where that lies apart from it. */
  readonly detachedStore?: Uint8Array;
};

/** Builds and signs a manifest that is embedded nowhere; returns the manifest store. Rejects with the SDK's own error. */
export async function signManifest(
  definition: ManifestDefinition,
  signature: SdkSignature,
  signal: AbortSignal,
): Promise<Buffer> {
  return signBuilder(await builderOf(definition, signal), signature, signal);
}

/** The validation of an ingredient, with trust anchors in PEM (null for none); or that it is not validated. */
export type IngredientValidation = { readonly anchors: string | null } | 'none';

/**
 * Reads an asset as an ingredient, with or without validating it, and signs a manifest with it: some that the SDK reads,
 * it cannot sign. Returns the ingredient and that manifest store. Rejects with the SDK's own error.
 */
export async function signIngredient(
  definition: ManifestDefinition,
  ingredient: Readonly<Record<string, unknown>>,
  asset: SdkAsset,
  validation: IngredientValidation,
  signature: SdkSignature,
  signal: AbortSignal,
): Promise<{ ingredient: IngredientJson; store: Buffer }> {
  const settings = validation === 'none' ? NOT_VALIDATING : validating(validation.anchors);
  const builder = await builderOf(definition, signal, settings);
  await awaitNativeCall(() => builder.addIngredient(JSON.stringify(ingredient), sdkAsset(asset)), signal);
  const read = builder.getManifestDefinition().ingredients?.[0] as IngredientJson;
  return { ingredient: read, store: await signBuilder(builder, signature, signal) };
}

/**
 * Reads and validates the manifest store of an asset. `anchors` are certificates in PEM that signers and authorities may have; null
 * for none. Returns null where there is no store. Rejects with the SDK's own error.
 */
export async function readReport(
  asset: SdkAsset,
  anchors: string | null,
  signal: AbortSignal,
): Promise<ManifestReport | null> {
  const { detachedStore: store } = asset;
  const read = async () =>
    store === undefined
      ? await Reader.fromAsset(sdkAsset(asset), validating(anchors))
      : await Reader.fromManifestDataAndAsset(Buffer.from(store), sdkAsset(asset), validating(anchors));
  const reader = await awaitNativeCall(read, signal);
  return reader === null ? null : (reader.json() as ManifestReport);
}

/** Returns the manifest store of the first ingredient of the active manifest; null where there is none. */
export async function ingredientStoreOf(store: Uint8Array, signal: AbortSignal): Promise<Buffer | null> {
  const reader = await awaitNativeCall(() => Reader.fromAsset(storeAsset(store), NOT_VALIDATING), signal);
  const report = reader?.json() as ManifestReport | undefined;
  const identifier = report?.manifests[report.active_manifest ?? '']?.ingredients?.[0]?.manifest_data?.identifier;
  if (reader == null || identifier === undefined) return null;
  const { buffer } = await awaitNativeCall(() => reader.resourceToAsset(identifier, { buffer: null }), signal);
  return buffer;
}

/** Returns the label of the active manifest. Rejects with the SDK's own error where the bytes are no manifest store. */
export async function activeManifestOf(store: Uint8Array, signal: AbortSignal): Promise<string | null> {
  const reader = await awaitNativeCall(() => Reader.fromAsset(storeAsset(store), NOT_VALIDATING), signal);
  return (reader?.json() as ManifestReport | undefined)?.active_manifest ?? null;
}

async function builderOf(
  { json, createdLabels, resources }: ManifestDefinition,
  signal: AbortSignal,
  settings: typeof NOT_VALIDATING | ReturnType<typeof validating> = VALIDATING,
): Promise<Builder> {
  const vouchedFor = { ...settings.builder, created_assertion_labels: [...createdLabels] };
  const builder = Builder.withJson(json as never, { ...settings, builder: vouchedFor } as typeof settings);
  builder.setNoEmbed(true);
  for (const [identifier, bytes] of resources) {
    await awaitNativeCall(() => builder.addResource(identifier, storeAsset(bytes)), signal);
  }
  return builder;
}

/**
 * Signs with `signConfigAsync` where it can: a `CallbackSigner` object, which identity assertions need, keeps the process alive
 * until it is collected.
 */
function signBuilder(builder: Builder, signature: SdkSignature, signal: AbortSignal): Promise<Buffer> {
  const { sign, call, identityAssertion } = signature;
  const output = { buffer: null };
  if (identityAssertion === undefined) {
    return awaitNativeCall(() => builder.signConfigAsync(sign, call, STAND_IN, output), signal);
  }
  return awaitNativeCall(async () => {
    const signer = await identitySigner(signature, identityAssertion);
    return await builder.signAsync(signer, STAND_IN, output);
  }, signal);
}

async function identitySigner(
  { sign, call }: SdkSignature,
  { sizeBytes, role, referencedLabels, sign: signPayload }: IdentityAssertion,
): Promise<IdentityAssertionSigner> {
  const sdkSign = signPayload as unknown as Parameters<typeof CallbackCredentialHolder.newCallbackCredentialHolder>[2];
  const holder = CallbackCredentialHolder.newCallbackCredentialHolder(sizeBytes, 'cawg.x509.cose', sdkSign);
  const assertion = await IdentityAssertionBuilder.identityBuilderForCredentialHolder(holder);
  assertion.addReferencedAssertions([...referencedLabels]);
  assertion.addRoles([role]);
  const signer = IdentityAssertionSigner.new(CallbackSigner.newSigner(call, sign).getHandle());
  signer.addIdentityAssertion(assertion);
  return signer;
}

/** Returns the settings of a validation that knows trust anchors, where there are any. */
function validating(anchors: string | null) {
  return anchors === null ? VALIDATING : { ...VALIDATING, trust: { trust_anchors: anchors } };
}

function sdkAsset(asset: SdkAsset): { path: string; mimeType: string } | { buffer: Buffer; mimeType: string } {
  const mimeType = SDK_MEDIA_TYPES.get(asset.mediaType) ?? asset.mediaType;
  return 'path' in asset ? { path: asset.path, mimeType } : { buffer: Buffer.from(asset.bytes), mimeType };
}

function storeAsset(store: Uint8Array): { buffer: Buffer; mimeType: string } {
  return { buffer: Buffer.from(store), mimeType: MANIFEST_STORE_TYPE };
}
