import { OWN_NAMESPACE } from '#provenance/manifest-request.ts';
import {
  type Finding,
  type Findings,
  failuresIn,
  problemsIn,
  VALID_ASSET,
  type ValidationResults,
} from '#provenance/validation-report.ts';
import { PRESENTATION_LABEL } from '../presentation/presentation.ts';
import type { StoredBinding } from './stored-binding.ts';

// Puts the findings of our own pass about the hard binding of a publication into the official reader's results, by the same codes.

export const MATCH = 'assertion.bmffHash.match';
export const MISMATCH = 'assertion.bmffHash.mismatch';
/** Code of a publication whose media match the binding, and are missing, elsewhere or there twice. */
const INCOMPLETE = `${OWN_NAMESPACE}publication.mismatch`;
/** Code of a publication whose playlists, or the files that they name, are not the signed ones. */
const PRESENTATION_MISMATCH = `${PRESENTATION_LABEL}.mismatch`;
/** Stands in for a fragment that is too large: an empty box, which no manifest binds. */
export const STAND_IN = Buffer.from('0000000866726565', 'hex');

/** Returns true when the reader looked at the same binding as our own pass. */
export function isAbout(binding: StoredBinding, results: ValidationResults): boolean {
  const urls = bindingUrlsIn(results);
  return urls.length > 0 && urls.every((url) => url === urlOf(binding));
}

/** Returns the results for a stand-in with a match instead of the mismatch, unless the reader looked at another binding. */
export function withMatch(results: ValidationResults, binding: StoredBinding): ValidationResults {
  if (!isAbout(binding, results)) return results;
  const finding = { code: MATCH, url: urlOf(binding), explanation: 'BMFF hash valid' };
  return edited(without(results, MISMATCH), (findings) => ({ ...findings, success: [...findings.success, finding] }));
}

/**
 * Returns the results with a mismatch of the binding instead of its match, unless the reader found one itself. Without
 * a binding that our own pass knows, it is about the one that the reader looked at.
 */
export function withMismatch(
  results: ValidationResults,
  binding: StoredBinding | null,
  explanation: string,
): ValidationResults {
  if (hasCode(results.activeManifest?.failure, MISMATCH)) return results;
  const url = binding === null ? bindingUrlsIn(results)[0] : urlOf(binding);
  return withFailure(without(results, MATCH), { code: MISMATCH, ...(url !== undefined && { url }), explanation });
}

function withFailure(results: ValidationResults, failure: Finding): ValidationResults {
  return edited(results, (findings) => ({ ...findings, failure: [...findings.failure, failure] }));
}

/** Returns the results with the failure of a publication that is not complete or in the signed order, unless they have it. */
export function withIncomplete(results: ValidationResults, explanation: string): ValidationResults {
  if (hasCode(results.activeManifest?.failure, INCOMPLETE)) return results;
  return withFailure(results, { code: INCOMPLETE, explanation });
}

/** Returns the results with the failure of a publication whose playlists are not the signed ones. */
export function withChangedPresentation(results: ValidationResults, explanation: string): ValidationResults {
  return withFailure(results, { code: PRESENTATION_MISMATCH, explanation });
}

/**
 * Returns the verdict on results by the reader's own rule (C2PA 2.2 §14.3.5 and §14.3.6), for results that were
 * completed after it gave its verdict.
 */
export function verdictOf(results: ValidationResults): 'Trusted' | 'Valid' | 'Invalid' {
  const succeeded = new Set(results.activeManifest?.success.map(({ code }) => code));
  const ofIngredients = (results.ingredientDeltas ?? []).map(({ validationDeltas }) => validationDeltas);
  const hasProblem =
    problemsIn(results, VALID_ASSET).length > 0 ||
    ofIngredients.some((findings) => failuresIn(findings, VALID_ASSET).length > 0);
  if (hasProblem || !succeeded.has('claimSignature.insideValidity')) return 'Invalid';
  const hasFailure = [results.activeManifest, ...ofIngredients].some(
    (findings) => (findings?.failure ?? []).length > 0,
  );
  return succeeded.has('signingCredential.trusted') && !hasFailure ? 'Trusted' : 'Valid';
}

/** Returns the results without the findings of one code. */
export function without(results: ValidationResults, unwanted: string): ValidationResults {
  const others = (findings: readonly Finding[]) => findings.filter(({ code }) => code !== unwanted);
  return edited(results, (findings) => ({
    ...findings,
    success: others(findings.success),
    failure: others(findings.failure),
  }));
}

export function hasCode(findings: readonly Finding[] | undefined, code: string): boolean {
  return findings?.some((finding) => finding.code === code) ?? false;
}

/** Returns the JUMBF URI of a binding in its store. */
function urlOf({ manifest, assertion }: StoredBinding): string {
  return `self#jumbf=/c2pa/${manifest}/c2pa.assertions/${assertion}`;
}

/** Returns the URIs of the bindings that the reader found to match, or not to match. */
function bindingUrlsIn({ activeManifest }: ValidationResults): (string | undefined)[] {
  const { success = [], failure = [] } = activeManifest ?? {};
  return [...success, ...failure].filter(({ code }) => code === MATCH || code === MISMATCH).map(({ url }) => url);
}

function edited(results: ValidationResults, edit: (findings: Findings) => Findings): ValidationResults {
  return results.activeManifest === undefined ? results : { ...results, activeManifest: edit(results.activeManifest) };
}
