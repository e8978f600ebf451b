import type { ByteSource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import { itemAt } from '#errors/assert.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { exceedsChainLimits } from '#provenance/chain-limits.ts';
import type { IngredientSource } from '#provenance/manifest-request.ts';
import type { FragmentReader } from '#provenance/official-reader.ts';
import type { TrustLists } from '#provenance/trust-lists.ts';
import type { ValidationResults } from '#provenance/validation-report.ts';
import { PartContents } from './fragments/part-contents.ts';
import { describePart, singleFileOf } from './media-part.ts';
import { readPresentation } from './presentation/stored-presentation.ts';
import type { PublicationSource } from './publication.ts';
import type { PublicationFolder } from './publication-folder.ts';
import { withChangedPresentation, withIncomplete } from './verification/binding-results.ts';
import { resultsOfEarlierManifest } from './verification/earlier-manifest-results.ts';
import { verifyParts } from './verification/part-findings.ts';
import { type PublicationVerdict, verdictWarnings } from './verification/publication-verdict.ts';
import { type SourceVerdict, verifySource } from './verify-source.ts';

/** Resources that a publication is verified with. */
export interface VerificationContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  readonly reader: FragmentReader;
  /** Trust lists that the manifests are validated with. */
  readonly trust: TrustLists;
  /** Returns the ingredient of a file, with what `verify` says of it. It stays open until the SDK has read it, by its path. */
  describeParent(source: ByteSource): Promise<DescribedParent>;
  /** Called after each part, because a large publication takes long and writes nothing meanwhile. */
  progress(bytesDone: number, bytesTotal: number): void;
}

/** A file as an ingredient, with warnings. */
interface DescribedParent {
  readonly ingredient: IngredientSource;
  readonly warnings: readonly Warning[];
}

/** A publication as the ingredient of what is made from it. */
export interface VerifiedIngredient {
  readonly ingredient: IngredientSource;
  /** Ingredients of further manifests, where init segments carry different ones. */
  readonly others: readonly IngredientSource[];
  /** Warnings about what is not as it was signed, or cannot be verified. */
  readonly warnings: readonly Warning[];
  /** Digests of the verified parts, for copies to be compared with; null where no part carries a manifest. */
  readonly contents: PartContents | null;
}

const MEDIA_TYPE = 'video/mp4';

/**
 * Verifies a publication completely against the manifests that an earlier signing left in its init segments: every init
 * segment and every fragment, and what its playlists play of them. If init segments carry different manifests, the first is
 * the publication's. A publication without manifests is a plain ingredient. Returns the ingredient that the new manifest
 * records; the comparisons themselves are `PartsVerification` and `verifySource`.
 */
export async function verifyAsIngredient(
  read: PublicationSource,
  context: VerificationContext,
): Promise<VerifiedIngredient> {
  const { folder, publication, inits } = read;
  const title = folder.name;
  const plain: IngredientSource = { kind: 'plain', title, mediaType: MEDIA_TYPE };
  if (inits.every(({ manifest }) => manifest === null)) {
    return { ingredient: plain, others: [], warnings: [], contents: null };
  }
  const contents = new PartContents();
  const totalBytes = folder.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const options = { contents, verified: () => context.progress(0, totalBytes) };
  const verdict = await verifyParts(folder, publication.renditions, context.signal, options);
  const verified =
    verdict.manifests.length === 0
      ? { change: null, otherwise: null }
      : await verifySource(folder, verdict, context.signal);
  const described = await manifestIngredients(folder, verdict, verified, context);
  const [ingredient = plain, ...others] = described.map((each) => each.ingredient);
  const warnings = [
    ...verdictWarnings(title, verdict),
    ...sourceWarnings(title, verified),
    ...described.flatMap((each) => each.warnings),
  ];
  return { ingredient, others, warnings, contents };
}

function sourceWarnings(title: string, { change, otherwise }: SourceVerdict): Warning[] {
  return [
    ...(change === null ? [] : [warning('PRESENTATION_CHANGED', { title, problem: change })]),
    ...(otherwise === null ? [] : [warning('PUBLICATION_PLAYED_OTHERWISE', { title, ...otherwise })]),
  ];
}

async function manifestIngredients(
  folder: PublicationFolder,
  verdict: PublicationVerdict,
  verified: SourceVerdict,
  context: VerificationContext,
): Promise<DescribedParent[]> {
  const ingredients: DescribedParent[] = [];
  for (const [index, manifest] of verdict.manifests.entries()) {
    const carriers = verdict.renditions.flatMap(({ read, listed }) => (read.manifest === index ? listed.present : []));
    const title = index === 0 ? folder.name : `${folder.name}: ${describePart(itemAt(carriers, 0).init)}`;
    const file = manifest.binding === null ? singleFileOf(carriers) : null;
    if (file !== null) {
      const source = await folder.open(file, context.signal);
      context.scratch.adopt(source);
      const { ingredient, warnings } = await context.describeParent(source);
      ingredients.push({
        ingredient: ingredient.kind === 'reference' ? ingredient : { ...ingredient, title },
        warnings,
      });
      continue;
    }
    const { reader, trust, signal } = context;
    const { store: manifestStore } = manifest;
    const parts = { ...verdict, folder, reader, signal, anchors: trust.anchorsFor(manifestStore) };
    const results = exceedsChainLimits(manifestStore) ? null : await resultsOfEarlierManifest(index, parts);
    const validationResults = results === null ? null : withVerdict(results, manifestStore, verified);
    const described = { title, mediaType: MEDIA_TYPE, manifestStore, validationResults };
    ingredients.push({ ingredient: { kind: 'manifest-store', ...described }, warnings: [] });
  }
  return ingredients;
}

/** Returns the results with failures of codes of this service where all media match, and are not played as they were signed. */
function withVerdict(
  results: ValidationResults,
  store: Buffer,
  { change, otherwise }: SourceVerdict,
): ValidationResults {
  const played =
    otherwise === null
      ? results
      : withIncomplete(results, `"${otherwise.playlist}", line ${otherwise.line}: ${otherwise.problem}`);
  return change !== null && readPresentation(store) !== null ? withChangedPresentation(played, change) : played;
}
