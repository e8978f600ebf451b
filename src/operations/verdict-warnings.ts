import { type Warning, warning } from '#errors/warning.ts';
import { describeFinding } from '#publications/checking/describe-finding.ts';
import type { PartFinding, PublicationVerdict } from '#publications/checking/publication-verdict.ts';
import { describePart, type Rendition } from '#publications/publication.ts';

/** Findings that are told one by one; beyond, they are counted. */
const TOLD_FINDINGS_MAX_COUNT = 10;
/** Other manifests that the warning about them names by their init segments. */
const NAMED_INITS_MAX_COUNT = 5;

/** Returns what there is to know about a publication that is not as it was signed, or of which that cannot be told. */
export function verdictWarnings(
  title: string,
  { manifests, findings }: PublicationVerdict,
  renditions: readonly Rendition[],
): Warning[] {
  const told = findings.slice(0, TOLD_FINDINGS_MAX_COUNT).map((finding) => findingWarning(title, finding));
  const count = findings.length - told.length;
  const more = count > 0 ? [warning('PUBLICATION_FINDINGS_OMITTED', { title, count })] : [];
  if (manifests.length === 0) {
    const problem = 'its boxes of C2PA are malformed';
    return [warning('INGREDIENT_UNREADABLE', { title, problem })];
  }
  if (manifests.length === 1) return [...told, ...more];
  const inits = manifests.slice(1, NAMED_INITS_MAX_COUNT + 1).flatMap(({ renditions: [index] }) => {
    const rendition = index === undefined ? undefined : renditions[index];
    return rendition === undefined ? [] : [describePart(rendition.init)];
  });
  const differ = warning('PUBLICATION_MANIFESTS_DIFFER', { title, manifestCount: manifests.length, inits });
  return [...told, ...more, differ];
}

function findingWarning(title: string, finding: PartFinding): Warning {
  const { kind, init, parts, locations, count } = finding;
  return warning(kind === 'unjudged' ? 'PUBLICATION_NOT_VERIFIED' : 'PUBLICATION_ALTERED', {
    title,
    finding: kind,
    init: init === null ? null : describePart(init),
    parts: parts.map(describePart),
    locations,
    count,
    problem: describeFinding(finding),
  });
}
