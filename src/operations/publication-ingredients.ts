import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { IngredientSource } from '#provenance/authoring/manifest-author.ts';
import type { FragmentReader } from '#provenance/reading/fragment-reader.ts';
import type { MediaPart, Publication } from '#publications/publication.ts';
import type { ExistingPublication } from '#publications/repackaging/existing-publication.ts';
import type { InitLayout } from '#publications/signing/init-layout.ts';
import { readInitLayouts } from '#publications/signing/sign-rendition.ts';
import { assignRoles, type Candidate, type Ingredients } from './ingredients.ts';

/** What the ingredients of a publication are read from: its renditions, and the layouts of their init segments in order. */
interface PublicationSource {
  readonly folder: SourceFolder;
  readonly publication: Pick<Publication, 'renditions'>;
  readonly inits: readonly InitLayout[];
}

/** A publication as it was read, before it is signed. */
export interface ReadPublication extends PublicationSource {
  readonly publication: Publication;
}

/** An earlier manifest may take so many bytes in an init segment. */
const STORE_MAX_BYTES = 64 * 1024 * 1024;
/** The reader holds an init segment and a fragment in memory; larger ones are not validated. */
const PART_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Decides the ingredients of a signed publication, as for files: without a given parent it is an edit of its own source,
 * and what an earlier signing left in its init segments is that source's manifest.
 */
export async function publicationIngredients(
  read: PublicationSource,
  given: Candidate | null,
  reader: FragmentReader,
  signal: AbortSignal,
): Promise<Ingredients> {
  return assignRoles({ ingredient: await sourceIngredient(read, reader, signal), warnings: [] }, given);
}

/** As if a publication whose segments are made anew had been signed as it was. */
export async function existingIngredients(
  folder: SourceFolder,
  { renditions: existing }: ExistingPublication,
  given: Candidate | null,
  reader: FragmentReader,
  signal: AbortSignal,
): Promise<Ingredients> {
  const renditions = existing.flatMap(({ hasInit, parts: [init, ...fragments] }) =>
    hasInit && init !== undefined ? [{ init, fragments }] : [],
  );
  const inits = await readInitLayouts(folder, renditions, signal);
  return await publicationIngredients({ folder, publication: { renditions }, inits }, given, reader, signal);
}

async function sourceIngredient(
  read: PublicationSource,
  reader: FragmentReader,
  signal: AbortSignal,
): Promise<IngredientSource> {
  const common = { title: read.folder.name, mediaType: 'video/mp4' };
  const manifestStore = await earlierManifest(read, signal);
  if (manifestStore === null) return { ...common, kind: 'plain' };
  const validationResults = await earlierFindings(read, reader, signal);
  return { ...common, kind: 'manifest-store', manifestStore, validationResults };
}

/** The manifest store of the first init segment that has one; all of a set carry the same (C2PA 2.2, §A.5). */
async function earlierManifest({ folder, inits }: PublicationSource, signal: AbortSignal): Promise<Uint8Array | null> {
  for (const { path, manifest } of inits) {
    if (manifest === null || manifest.length > STORE_MAX_BYTES) continue;
    const source = await folder.open(path, signal);
    try {
      return await readRange(source, manifest.offset, manifest.length, signal);
    } finally {
      await source.close();
    }
  }
  return null;
}

/** What the reader finds of the earlier signing, by the first fragment of the first rendition that carries a manifest. */
async function earlierFindings(
  { folder, publication, inits }: PublicationSource,
  reader: FragmentReader,
  signal: AbortSignal,
): Promise<object | null> {
  const index = inits.findIndex(({ manifest }) => manifest !== null);
  const rendition = publication.renditions[index];
  const [first] = rendition?.fragments ?? [];
  if (rendition === undefined || first === undefined) return null;
  const init = await readPart(folder, rendition.init, signal);
  const fragment = await readPart(folder, first, signal);
  return init === null || fragment === null ? null : await reader.validationResults(init, fragment, signal);
}

/** A part as bytes; null where it is larger than a part is read for this. */
async function readPart(folder: SourceFolder, part: MediaPart, signal: AbortSignal): Promise<Uint8Array | null> {
  const source = await folder.open(part.path, signal);
  try {
    const { offset, length } = part.range ?? { offset: 0, length: source.sizeBytes };
    return length > PART_MAX_BYTES ? null : await readRange(source, offset, length, signal);
  } finally {
    await source.close();
  }
}
