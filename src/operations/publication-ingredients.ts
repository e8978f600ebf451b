import { localCopyOf } from '#bytes/scratch-copy.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { IngredientSource } from '#provenance/authoring/manifest-author.ts';
import { exceedsChainLimits } from '#provenance/reading/chain-limits.ts';
import type { FragmentReader } from '#provenance/reading/fragment-reader.ts';
import { PartContents } from '#publications/checking/part-contents.ts';
import type { PublicationVerdict } from '#publications/checking/publication-verdict.ts';
import { verifyPublication } from '#publications/checking/verify-publication.ts';
import { describePart, type MediaPart, type Publication, type Rendition } from '#publications/publication.ts';
import type { InitLayout } from '#publications/signing/init-layout.ts';
import { earlierResults } from './earlier-results.ts';
import { assignRoles, type Candidate, type Ingredients } from './ingredients.ts';
import type { InputContext, OperationRooms } from './operation.ts';
import { verdictWarnings } from './verdict-warnings.ts';

/** What the ingredients of a publication are read from: its renditions, and the layouts of their init segments in order. */
export interface PublicationSource {
  readonly folder: SourceFolder;
  readonly publication: Pick<Publication, 'renditions'>;
  readonly inits: readonly InitLayout[];
}

/** A publication as it was read, before it is signed. */
export interface ReadPublication extends PublicationSource {
  readonly publication: Publication;
}

/** What a publication is validated with. */
export interface ValidationContext extends Pick<InputContext, 'signal' | 'scratch' | 'progress'> {
  readonly reader: FragmentReader;
}

/** What validation takes of an operation's context. */
export function validationContext(
  context: InputContext,
  { fragments: reader }: Pick<OperationRooms, 'fragments'>,
): ValidationContext {
  return { ...context, reader };
}

/** The ingredients of a publication, and what its parts held when they were validated; null where it was never signed. */
export interface PublicationOrigin {
  readonly ingredients: Ingredients;
  readonly contents: PartContents | null;
}

const MEDIA_TYPE = 'video/mp4';

/**
 * Decides the ingredients of a publication, as for files: without a given parent it is an edit of its own source. What an
 * earlier signing left in its init segments is that source's manifest, and is validated completely: every init segment and
 * every fragment. Where init segments carry different manifests, the first is the source's and the others are components.
 */
export async function publicationOrigin(
  read: PublicationSource,
  given: Candidate | null,
  context: ValidationContext,
): Promise<PublicationOrigin> {
  const { folder, publication, inits } = read;
  const title = folder.name;
  if (inits.every(({ manifest }) => manifest === null)) {
    const plain = { ingredient: { kind: 'plain', title, mediaType: MEDIA_TYPE }, warnings: [] } as const;
    return { ingredients: assignRoles(plain, given), contents: null };
  }
  const contents = new PartContents();
  const totalBytes = folder.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  // A large publication takes long, and writes nothing meanwhile: each part is a sign of life.
  const options = { contents, verified: () => context.progress(0, totalBytes) };
  const verdict = await verifyPublication(folder, publication.renditions, context.signal, options);
  const [main, ...others] = await manifestIngredients(read, verdict, context);
  const ingredient = main ?? { kind: 'plain', title, mediaType: MEDIA_TYPE };
  const warnings = verdictWarnings(title, verdict, publication.renditions);
  const { roles, ...rest } = assignRoles({ ingredient, warnings }, given);
  const allActionsIncluded = roles.allActionsIncluded && warnings.length === 0;
  const ingredients = {
    ...rest,
    roles: { ...roles, components: [...roles.components, ...others], allActionsIncluded },
  };
  return { ingredients, contents };
}

async function manifestIngredients(
  { folder, publication: { renditions } }: PublicationSource,
  { manifests, findings }: PublicationVerdict,
  context: ValidationContext,
): Promise<IngredientSource[]> {
  const ingredients: IngredientSource[] = [];
  const hasUnsigned = findings.some(({ kind }) => kind === 'unsigned');
  for (const [index, manifest] of manifests.entries()) {
    const carriers = manifest.renditions.map((number) => renditions[number] as Rendition);
    const [first] = carriers;
    const title = index === 0 || first === undefined ? folder.name : `${folder.name}: ${describePart(first.init)}`;
    const file = manifest.binding === null ? singleFileOf(carriers) : null;
    if (file !== null) {
      ingredients.push(await fileIngredient(folder, file, title, context));
      continue;
    }
    const own = findings.filter((finding) => finding.manifest === index);
    const parts = { folder, renditions, reader: context.reader, hasUnsigned };
    const { store: manifestStore } = manifest;
    const isUnfit = exceedsChainLimits(manifestStore);
    const validationResults = isUnfit ? null : await earlierResults(manifest, own, parts, context.signal);
    ingredients.push({ kind: 'manifest-store', title, mediaType: MEDIA_TYPE, manifestStore, validationResults });
  }
  return ingredients;
}

/** The file that all parts are byte ranges of, where there is one: its manifest may bind it as a whole. */
function singleFileOf(renditions: readonly Rendition[]): string | null {
  const parts: MediaPart[] = renditions.flatMap(({ init, fragments }) => [init, ...fragments]);
  const [first] = parts;
  const isOne = parts.every(({ path, range }) => range !== null && path === first?.path);
  return isOne && first !== undefined ? first.path : null;
}

/** The SDK reads the file later, by its path: it stays open as long as the scratch space. */
async function fileIngredient(
  folder: SourceFolder,
  file: string,
  title: string,
  { scratch, signal }: ValidationContext,
): Promise<IngredientSource> {
  const source = await folder.open(file, signal);
  scratch.adopt(source);
  const { localPath: path } = await localCopyOf(source, scratch, signal);
  return { kind: 'file', path, title, mediaType: MEDIA_TYPE };
}
