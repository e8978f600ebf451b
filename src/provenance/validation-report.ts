/** One entry of a validation report. */
export interface Finding {
  /** A status code of C2PA 2.2 §15.2. */
  readonly code: string;
  /** The part of the manifest store that it is about. */
  readonly url?: string;
  readonly explanation?: string;
}

/** The findings about one manifest, by weight. */
export interface Findings {
  readonly success: readonly Finding[];
  readonly informational: readonly Finding[];
  readonly failure: readonly Finding[];
}

/** The findings about an asset and its manifest store, as far as they are used here. */
export interface ValidationResults {
  readonly activeManifest?: Findings;
  /** Findings about ingredients that their manifests did not record when they were added. */
  readonly ingredientDeltas?: readonly { readonly validationDeltas: Findings }[] | null;
}

/** A manifest in a report, as far as it is used here. */
export interface ReportedManifest {
  readonly title?: string;
  readonly claim_generator?: string;
  readonly claim_generator_info?: readonly { readonly name?: string; readonly version?: string }[];
  readonly assertions?: readonly { readonly label: string; readonly data: unknown; readonly created?: boolean }[];
  readonly ingredients?: readonly ReportedIngredient[];
  readonly signature_info?: {
    readonly alg?: string;
    /** The organisation in the certificate's subject. */
    readonly issuer?: string;
    readonly common_name?: string;
    readonly cert_serial_number?: string;
    /** The time that an authority states, in ISO 8601. */
    readonly time?: string;
  };
}

/** An ingredient in a report, as far as it is used here. */
export interface ReportedIngredient {
  readonly title?: string;
  readonly format?: string;
  readonly relationship?: string;
  readonly active_manifest?: string;
  readonly manifest_data?: { readonly identifier: string };
  readonly validation_results?: ValidationResults;
  /** The failures of an ingredient of the first versions. */
  readonly validation_status?: readonly Finding[];
}

/** The report of an official reader about an asset, as far as it is used here. */
export interface ManifestReport {
  readonly active_manifest?: string;
  readonly manifests: Readonly<Record<string, ReportedManifest>>;
  readonly validation_results?: ValidationResults;
  /** The reader's verdict. */
  readonly validation_state?: 'Trusted' | 'Valid' | 'Invalid';
}

/** The status codes that decide whether an active manifest is accepted. */
export interface ValidationRule {
  /** Failures that are accepted. */
  readonly tolerated: readonly string[];
  /** Successes that must be there, each as a list of alternatives: a check that was not made is no failure. */
  readonly required: readonly (readonly string[])[];
}

/** The readers' words for media that is what was signed. */
export const MATCH_CODES = ['assertion.dataHash.match', 'assertion.bmffHash.match', 'assertion.boxesHash.match'];

/** Accepts a manifest that is valid for its asset. Trust is not required: only its owner can put a certificate on a list. */
export const VALID_ASSET: ValidationRule = {
  tolerated: ['signingCredential.untrusted'],
  required: [['claimSignature.validated'], MATCH_CODES],
};

/** Returns results with failures of the active manifest that were found beside them, which its media do not match then. */
export function withFailures(results: ValidationResults | undefined, failures: readonly Finding[]): ValidationResults {
  const { success = [], informational = [], failure = [] } = results?.activeManifest ?? {};
  const others = success.filter(({ code }) => !MATCH_CODES.includes(code));
  return { ...results, activeManifest: { success: others, informational, failure: [...failure, ...failures] } };
}

const MAX_NAMED_PROBLEMS = 10;

/**
 * Returns the status codes by which a rule refuses an active manifest, at most ten; an empty list where it is accepted.
 * Findings about ingredients do not count.
 */
export function problemsIn(results: ValidationResults | null | undefined, rule: ValidationRule): string[] {
  const findings = results?.activeManifest;
  if (findings === undefined) return ['no manifest was found'];
  const succeeded = new Set(findings.success.map(({ code }) => code));
  const missing = rule.required.filter((codes) => !codes.some((code) => succeeded.has(code)));
  const problems = [...failuresIn(findings, rule), ...missing.map((codes) => `without ${codes.join(' or ')}`)];
  return problems.slice(0, MAX_NAMED_PROBLEMS);
}

/** Returns the status codes of the failures that a rule does not tolerate, each once. */
export function failuresIn(findings: Findings | undefined, { tolerated }: ValidationRule): string[] {
  const codes = (findings?.failure ?? []).map(({ code }) => code).filter((code) => !tolerated.includes(code));
  return [...new Set(codes)];
}
