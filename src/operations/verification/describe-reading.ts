import type { Verification } from '#contract/verification.ts';
import type { AssetReading } from '#provenance/asset-reader.ts';
import { describeReport, type ReportDescription } from '#provenance/describe-report.ts';
import { explanationOf } from '#provenance/status-codes.ts';
import type { TrustLists } from '#provenance/trust-lists.ts';
import { summarize } from './summarize.ts';
import type { ReportKind } from './write-report.ts';

/** The verification of an input without a manifest. */
export const NO_MANIFEST: Verification = {
  state: 'none',
  summary: summarize({ state: 'none', codes: [], manifests: [] }),
  codes: [],
  manifests: [],
};

/** Describes what the official reader says of a file. */
export function describeReading(
  reading: AssetReading,
  manifestFrom: 'embedded' | 'sidecar',
  kind: ReportKind,
): Verification {
  if (reading === 'none') return NO_MANIFEST;
  const { state, ...rest } = describeReported(reading, kind);
  return { state, summary: summarize({ state, ...rest }), manifest_from: manifestFrom, ...rest };
}

/** Describes a report; or a manifest store that the reader finds, and cannot read. */
export function describeReported(reading: Exclude<AssetReading, 'none'>, kind: ReportKind): ReportDescription {
  if (!('problem' in reading)) return describeReport(reading, kind);
  const explanation = `${explanationOf('general.error')} The reader says: ${reading.problem}`;
  return {
    state: 'invalid',
    codes: [{ code: 'general.error', kind: 'failure', explanation, count: 1 }],
    manifests: [],
  };
}

/**
 * Names the trust list of a trusted verification. The readers know one bundle of anchors: a signer who has that of a time-stamp
 * authority only is on no list. `store` is null where its bytes are not known here; then no list is named.
 */
export function withTrustList(verification: Verification, store: Uint8Array | null, lists: TrustLists): Verification {
  if (verification.state !== 'trusted' || store === null) return verification;
  const list = lists.listOfSigner(store);
  const judged = list === null ? { ...verification, state: 'valid' as const } : { ...verification, trust_list: list };
  return { ...judged, summary: summarize(judged) };
}
