// The official reader (WebAssembly) in a web worker: it validates files and fragments beside the page, which gets a description
// of bounded size, however large the manifest is.
import { mostIdentities, withIdentities } from './shared/describe-identities.js';
import { describeReport } from './shared/describe-report.js';
import { summarize } from './shared/summarize.js';

/**
 * @typedef {import('../src/contract/verification.ts').Verification} Verification
 * @typedef {import('../src/contract/service.ts').ShownTrustLists} TrustLists
 *
 * @typedef {object} ReadRequest
 * @property {number} id
 * @property {string} mediaType
 * @property {Blob} blob the file, or the init segment of the fragment
 * @property {Blob} [fragment]
 * @property {boolean} detailed with the data of assertions, and the report as text
 * @property {TrustLists} trust
 *
 * @typedef {object} ReadAnswer
 * @property {number} id
 * @property {Verification} [verification] missing where nothing could be judged
 * @property {Blob | null} [raw] the reader's report as JSON
 * @property {string} [problem] why nothing could be judged
 * @property {boolean} [isBroken] the reader cannot be used again
 */

/** The reader's words for a file without a manifest. */
const NO_MANIFEST = /JumbfNotFound|no JUMBF data found|ProvenanceMissing/i;
/** The reader's words for a file that names a manifest at a remote address only. */
const REMOTE_MANIFEST = /must fetch remote manifests|RemoteManifest/i;
/** The reader's words for a file that is damaged, or none of its formats. */
const NOT_MEDIA = /UnsupportedType|type is unsupported|InvalidAsset|asset could not be parsed|IoError|failed to fill/i;

const loaded = loadReader();

/** Trust lists by the serial number of a signer that is on them. @type {Map<string, string | null>} */
const knownSigners = new Map();

/** Loads the reader once, under the names that the service serves it by: a worker has no import map. */
async function loadReader() {
  /** @type {typeof import('@contentauth/c2pa-wasm')} */
  const { default: init, WasmReader } = await import(new URL('./vendor/c2pa.js', import.meta.url).href);
  await init({ module_or_path: new URL('./vendor/c2pa_bg.wasm', import.meta.url) });
  return WasmReader;
}

addEventListener('message', async (/** @type {MessageEvent<ReadRequest>} */ { data }) => {
  try {
    postMessage({ id: data.id, ...(await answerTo(data)) });
  } catch (error) {
    postMessage({ id: data.id, ...failureOf(error) });
  }
});

/** @param {ReadRequest} request */
async function answerTo(request) {
  const { trust, detailed } = request;
  const lists = [...trust.signers, ...trust.authorities];
  const report = await reportOf(request, signerSettings(lists));
  const described = describeReport(report, detailed ? 'detailed' : 'summary');
  const verdict = described.state === 'trusted' ? await withTrustList(described, request) : described;
  // Of a publication that plays, one fragment of each rendition tells who vouches for it.
  const isAsked = detailed || request.fragment === undefined;
  const most = mostIdentities(report);
  const vouched = isAsked && most > 0 ? await withPublishers(verdict, request, most) : verdict;
  const verification = { ...vouched, summary: summarize(vouched) };
  return { verification, raw: detailed ? new Blob([JSON.stringify(report, null, 2)]) : null };
}

/**
 * The extended key usages of signers, as in the service: email, documents, time-stamps, OCSP, C2PA's own and Microsoft's. Left to
 * itself, the reader calls manifests invalid whose signer has a certificate for documents or claims only.
 */
const SIGNER_USAGES = [
  '1.3.6.1.5.5.7.3.4',
  '1.3.6.1.5.5.7.3.36',
  '1.3.6.1.5.5.7.3.8',
  '1.3.6.1.5.5.7.3.9',
  '1.3.6.1.4.1.62558.2.1',
  '1.3.6.1.4.1.311.76.59.1.9',
].join('\n');

/**
 * Returns the settings of a reading by lists of signers and authorities, which leaves identity assertions alone, as in the service.
 * @param {TrustLists['signers']} lists
 */
function signerSettings(lists) {
  return {
    core: { decode_identity_assertions: false },
    trust: {
      trust_config: SIGNER_USAGES,
      ...(lists.length > 0 && { trust_anchors: lists.map(({ pem }) => pem).join('\n') }),
    },
  };
}

/**
 * Adds what the reader says of identity assertions, by the lists of publishers. Several of one manifest are never told apart.
 * @param {any} described
 * @param {ReadRequest} request
 * @param {number} most the largest number of them in a manifest
 */
async function withPublishers(described, request, most) {
  const { publishers, allowed } = request.trust;
  const lists = [
    ...publishers.map(({ name, pem }) => ({ trust_uri: name, trust_anchors: pem })),
    ...allowed.map(({ name, pem }) => ({ trust_uri: name, trust_anchors: '', allowed_list: pem })),
  ];
  const anchors = lists.map((list) => ({ ...list, trust_kind: 'cawg' }));
  const settings = { core: { allowed_network_hosts: [] }, trust: { anchors } };
  const report = most > 1 ? { manifests: {} } : await reportOf(request, settings);
  return withIdentities(described, [report], allowed.length === 1 ? allowed[0]?.name : undefined);
}

/**
 * Reads a file or a fragment. Nothing that a manifest refers to is fetched.
 * @param {ReadRequest} request
 * @param {object} chosen settings
 */
async function reportOf({ mediaType, blob, fragment }, chosen) {
  const WasmReader = await loaded;
  const settings = JSON.stringify({ verify: { remote_manifest_fetch: false, ocsp_fetch: false }, ...chosen });
  const reader = await (fragment === undefined
    ? WasmReader.fromBlob(mediaType, blob, settings)
    : WasmReader.fromBlobFragment(mediaType, blob, fragment, settings));
  try {
    return reader.manifestStore();
  } finally {
    reader.free();
  }
}

/**
 * Names the trust list of a trusted signer: the first that suffices. A signer who has the anchor of a time-stamp authority only is
 * on no list, as for the service.
 * @param {any} described
 * @param {ReadRequest} request
 */
async function withTrustList(described, request) {
  const { name, serial_number: serial = '' } = described.manifests[0]?.signer ?? {};
  const signer = `${name} ${serial}`;
  if (!knownSigners.has(signer)) knownSigners.set(signer, await listOfSigner(request));
  const list = knownSigners.get(signer);
  return list == null ? { ...described, state: 'valid' } : { ...described, trust_list: list };
}

/** @param {ReadRequest} request */
async function listOfSigner(request) {
  const { signers, authorities } = request.trust;
  if (signers.length === 1 && authorities.length === 0) return signers[0]?.name ?? null;
  for (const list of signers) {
    const report = await reportOf(request, signerSettings([list]));
    const codes = /** @type {any[]} */ (report.validation_results?.activeManifest?.success ?? []);
    if (codes.some(({ code }) => code === 'signingCredential.trusted')) return list.name;
  }
  return null;
}

/**
 * Says what the failure of a reading means: no manifest, a manifest that cannot be read, or nothing to judge.
 * @param {unknown} error
 */
function failureOf(error) {
  const problem = error instanceof Error ? error.message : String(error);
  if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) return { problem, isBroken: true };
  const nothing = { manifests: [], codes: [] };
  if (NO_MANIFEST.test(problem)) {
    return { verification: { state: 'none', summary: 'No provenance information.', ...nothing }, raw: null };
  }
  if (REMOTE_MANIFEST.test(problem)) {
    const summary =
      'No provenance information in the file. It names a manifest at a remote address, which is not fetched.';
    return { verification: { state: 'none', summary, ...nothing }, raw: null };
  }
  if (NOT_MEDIA.test(problem)) return { problem };
  const explanation = `The manifest cannot be read. The reader says: ${problem}`;
  const codes = [{ code: 'general.error', kind: 'failure', explanation, count: 1 }];
  return { verification: { state: 'invalid', summary: explanation, codes, manifests: [] }, raw: null };
}
