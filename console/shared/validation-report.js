// @ts-nocheck
// Written by "npm run docs" from src/provenance/validation-report.ts: change that.
/** One entry of a validation report. */

                                 

/** The findings about one manifest, by weight. */

/** The findings about an asset and its manifest store, as far as they are used here. */

/** A manifest in a report, as far as it is used here. */

/** An ingredient in a report, as far as it is used here. */

/** The report of an official reader about an asset, as far as it is used here. */

/** The status codes that decide whether an active manifest is accepted. */

/** The readers' words for media that is what was signed. */
export const MATCH_CODES = ['assertion.dataHash.match', 'assertion.bmffHash.match', 'assertion.boxesHash.match'];

/** Accepts a manifest that is valid for its asset. Trust is not required: only its owner can put a certificate on a list. */
export const VALID_ASSET                 = {
  tolerated: ['signingCredential.untrusted'],
  required: [['claimSignature.validated'], MATCH_CODES],
};

/** Returns results with failures of the active manifest that were found beside them, which its media do not match then. */
export function withFailures(results                               , failures                    )                    {
  const { success = [], informational = [], failure = [] } = results?.activeManifest ?? {};
  const others = success.filter(({ code }) => !MATCH_CODES.includes(code));
  return { ...results, activeManifest: { success: others, informational, failure: [...failure, ...failures] } };
}

const MAX_NAMED_PROBLEMS = 10;

/**
 * Returns the status codes by which a rule refuses an active manifest, at most ten; an empty list where it is accepted.
 * Findings about ingredients do not count.
 */
export function problemsIn(results                                      , rule                )           {
  const findings = results?.activeManifest;
  if (findings === undefined) return ['no manifest was found'];
  const succeeded = new Set(findings.success.map(({ code }) => code));
  const missing = rule.required.filter((codes) => !codes.some((code) => succeeded.has(code)));
  const problems = [...failuresIn(findings, rule), ...missing.map((codes) => `without ${codes.join(' or ')}`)];
  return problems.slice(0, MAX_NAMED_PROBLEMS);
}

/** Returns the status codes of the failures that a rule does not tolerate, each once. */
export function failuresIn(findings                      , { tolerated }                )           {
  const codes = (findings?.failure ?? []).map(({ code }) => code).filter((code) => !tolerated.includes(code));
  return [...new Set(codes)];
}
