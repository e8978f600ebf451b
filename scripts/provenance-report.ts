import { Reader } from '@contentauth/c2pa-node';

/** The official reader's report on a file. */
export interface ProvenanceReport {
  /** `Valid`: signed and unchanged. `Trusted`: and its certificate is on a trust list. `Invalid`: anything else. */
  readonly state: string;
  /** The codes of its findings, such as `signingCredential.untrusted`. */
  readonly findings: readonly string[];
  readonly title: string;
  readonly signedBy: string;
  readonly generator: string;
  readonly actions: readonly string[];
  readonly ingredients: readonly { readonly title: string; readonly relationship: string }[];
  readonly assertions: readonly { readonly label: string; readonly data: unknown }[];
}

/** The part of the reader's JSON that is looked at here. */
export interface ManifestStore {
  readonly validation_state?: string;
  readonly validation_status?: readonly { readonly code: string }[];
  readonly active_manifest: string;
  readonly manifests: Readonly<Record<string, Manifest>>;
}

export interface Manifest {
  readonly title?: string;
  readonly claim_generator_info?: readonly { readonly name: string; readonly version?: string }[];
  readonly signature_info?: { readonly issuer?: string; readonly common_name?: string; readonly alg?: string };
  readonly assertions?: readonly { readonly label: string; readonly data: unknown }[];
  readonly ingredients?: readonly { readonly title?: string; readonly relationship: string }[];
}

/** Reads a file's provenance with the official C2PA reader; null where it carries none. Nothing remote is fetched. */
export async function readProvenance(path: string, mediaType: string): Promise<ProvenanceReport | null> {
  const settings = { verify: { remote_manifest_fetch: false } };
  const reader = await Reader.fromAsset({ path, mimeType: mediaType }, settings);
  return reader === null ? null : reportOf(reader.json() as unknown as ManifestStore);
}

export function reportOf(store: ManifestStore): ProvenanceReport {
  const manifest = store.manifests[store.active_manifest] ?? {};
  const { issuer, common_name: name, alg } = manifest.signature_info ?? {};
  const [generator] = manifest.claim_generator_info ?? [];
  const assertions = manifest.assertions ?? [];
  return {
    state: store.validation_state ?? 'unknown',
    findings: (store.validation_status ?? []).map(({ code }) => code),
    title: manifest.title ?? '',
    signedBy: `${name ?? 'unnamed'}, ${issuer ?? 'no organisation'} (${alg ?? '?'})`,
    generator: `${generator?.name ?? '?'} ${generator?.version ?? ''}`.trim(),
    actions: assertions.filter(({ label }) => label.startsWith('c2pa.actions')).flatMap(actionsOf),
    ingredients: (manifest.ingredients ?? []).map(({ title = '', relationship }) => ({ title, relationship })),
    assertions: assertions.filter(({ label }) => !label.startsWith('c2pa.')),
  };
}

function actionsOf({ data }: { readonly data: unknown }): string[] {
  const { actions = [] } = data as { readonly actions?: readonly { readonly action: string }[] };
  return actions.map(({ action }) => action);
}
