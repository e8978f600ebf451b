import { Reader } from '@contentauth/c2pa-node';
import { pemOf } from '#provenance/identity/pem.ts';
import { blobOf, wasmReader } from '#provenance/reading/wasm-reader.ts';
import type { ManifestReport } from '#provenance/validation-report.ts';
import type { TestIdentity } from '../manifests/test-identity.ts';

const VERIFY = { remote_manifest_fetch: false, ocsp_fetch: false };

/** A reader's verdict on a file, and its status codes about the identity assertion. */
export interface IdentityJudgement {
  readonly state: string | undefined;
  readonly codes: readonly string[];
}

/** Has both official readers, as anybody has them, judge a file and its identity assertion, with the publisher's root where given. */
export async function judgeIdentity(
  bytes: Uint8Array,
  mimeType: string,
  publisher?: TestIdentity,
): Promise<{ native: IdentityJudgement; wasm: IdentityJudgement }> {
  const native = await Reader.fromAsset({ buffer: Buffer.from(bytes), mimeType }, { verify: VERIFY });
  const root = publisher?.chain.at(-1);
  const anchors =
    root === undefined ? [] : [{ trust_anchors: pemOf(root), trust_uri: 'publishers', trust_kind: 'cawg' }];
  const WasmReader = await wasmReader();
  const wasm = await WasmReader.fromBlob(
    mimeType,
    blobOf(bytes),
    JSON.stringify({ verify: VERIFY, trust: { anchors } }),
  );
  return {
    native: judgementOf(native?.json() as ManifestReport),
    wasm: judgementOf(wasm.manifestStore() as ManifestReport),
  };
}

function judgementOf({ validation_state: state, validation_results: results }: ManifestReport): IdentityJudgement {
  const { success = [], failure = [] } = results?.activeManifest ?? {};
  const about = [...success, ...failure].filter(
    ({ code, url }) => url?.endsWith('/cawg.identity') && !/hashedURI/.test(code),
  );
  return { state, codes: about.map(({ code }) => code) };
}
