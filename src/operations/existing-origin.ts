import type { ByteSource } from '#bytes/byte-source.ts';
import type { LocalCopies } from '#bytes/local-copies.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { ExistingPublication, ExistingRendition } from '#publications/repackaging/existing-publication.ts';
import { joinedName } from '#publications/repackaging/joined-folder.ts';
import { readInitLayouts } from '#publications/signing/sign-rendition.ts';
import type { Candidate, Ingredients } from './ingredients.ts';
import type { PackagingTask } from './make-publication.ts';
import { publicationOrigin, type ValidationContext } from './publication-ingredients.ts';

/**
 * Decides the ingredients of a publication whose segments are made anew, as if it had been signed as it was. What is
 * validated are the copies on this host that the packager reads.
 */
export async function existingOrigin(
  folder: SourceFolder,
  existing: ExistingPublication,
  { plan }: PackagingTask,
  sources: LocalCopies,
  given: Candidate | null,
  context: ValidationContext,
): Promise<Ingredients> {
  const carriers = [...existing.renditions, ...existing.unchosen].filter(({ hasInit }) => hasInit);
  const renditions = carriers.flatMap(({ parts: [init, ...fragments] }) =>
    init === undefined ? [] : [{ init, fragments }],
  );
  const inits = await readInitLayouts(folder, renditions, context.signal);
  const isSigned = inits.some(({ manifest }) => manifest !== null);
  const packaged = new Set(plan.streams.map(({ file }) => file));
  const copied = carriers.filter((rendition) => packaged.has(joinedName(rendition)));
  const read = isSigned ? new CopiedParts(folder, copied, sources) : folder;
  return (await publicationOrigin({ folder: read, publication: { renditions }, inits }, given, context)).ingredients;
}

/** Where a part of a file lies in the local copy of the joined file. */
interface CopiedRange {
  readonly joined: string;
  /** In the file of the folder. */
  readonly offset: number;
  readonly length: number;
  readonly joinedOffset: number;
}

/** The folder of a publication, with the parts of some renditions read from the local copies of their joined files. */
class CopiedParts implements SourceFolder {
  readonly name: string;
  readonly files: SourceFolder['files'];
  readonly #folder: SourceFolder;
  readonly #sources: LocalCopies;
  readonly #ranges = new Map<string, CopiedRange[]>();

  constructor(folder: SourceFolder, renditions: readonly ExistingRendition[], sources: LocalCopies) {
    this.name = folder.name;
    this.files = folder.files;
    this.#folder = folder;
    this.#sources = sources;
    const sizes = new Map(folder.files.map(({ path, sizeBytes }) => [path, sizeBytes]));
    for (const rendition of renditions) {
      let joinedOffset = 0;
      for (const { path, range } of rendition.parts) {
        const { offset, length } = range ?? { offset: 0, length: sizes.get(path) ?? 0 };
        const ranges = this.#ranges.get(path) ?? [];
        ranges.push({ joined: joinedName(rendition), offset, length, joinedOffset });
        this.#ranges.set(path, ranges);
        joinedOffset += length;
      }
    }
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    const ranges = this.#ranges.get(path);
    if (ranges === undefined) return await this.#folder.open(path, signal);
    const sizeBytes = this.files.find((file) => file.path === path)?.sizeBytes ?? 0;
    return {
      name: path,
      sizeBytes,
      read: (target, offset, aborted) => this.#read(path, ranges, target, offset, aborted),
      close: () => Promise.resolve(),
    };
  }

  async #read(
    path: string,
    ranges: readonly CopiedRange[],
    target: Uint8Array,
    offset: number,
    signal: AbortSignal,
  ): Promise<void> {
    const end = offset + target.length;
    const range = ranges.find((each) => offset >= each.offset && end <= each.offset + each.length);
    if (range === undefined) throw new AppError('SOURCE_CHANGED', { name: path });
    const copy = await this.#sources.of(range.joined, signal);
    await copy.read(target, range.joinedOffset + offset - range.offset, signal);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
