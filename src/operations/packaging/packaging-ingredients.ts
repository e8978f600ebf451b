import { basename } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { LocalCopies } from '#bytes/local-copies.ts';
import { type SourceFolder, sizesIn } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import { warning } from '#errors/warning.ts';
import { readSignableFile } from '#formats/formats.ts';
import type { PlannedStream } from '#packaging/packaging-plan.ts';
import type { ContainerKind } from '#packaging/probed-file.ts';
import type { IngredientSource, RecordedAction } from '#provenance/manifest-request.ts';
import type { ExistingPublication, ExistingRendition } from '#publications/existing-publication.ts';
import { isOtherContainer } from '#publications/find-publication.ts';
import { joinedName } from '#publications/joined-folder.ts';
import { type PublicationFolder, publicationFolder } from '#publications/publication-folder.ts';
import { readInits } from '#publications/read-publication.ts';
import type { VerificationContext } from '#publications/verify-as-ingredient.ts';
import { describeIngredient, type UnassignedIngredient } from '../describe-ingredient.ts';
import { assignRoles, createdIngredients, creationOf, type GivenOrigin, type Ingredients } from '../ingredients.ts';
import type { InputContext } from '../operation.ts';
import { type InputSigning, publicationOrigin } from '../sign-fragmented-folder.ts';
import type { PackagingTask } from './make-publication.ts';

/** Media types of containers that carry no manifest (IANA, or what is commonly said). */
const MEDIA_TYPES: Readonly<Record<ContainerKind, string>> = {
  mp4: 'video/mp4',
  quicktime: 'video/quicktime',
  matroska: 'video/x-matroska',
  webm: 'video/webm',
  'mpeg-ts': 'video/mp2t',
  mp3: 'audio/mpeg',
  wave: 'audio/wav',
  ogg: 'audio/ogg',
  adts: 'audio/aac',
  flac: 'audio/flac',
  ac3: 'audio/ac3',
  vtt: 'text/vtt',
  srt: 'application/x-subrip',
  ttml: 'application/ttml+xml',
};

/** The ingredients of a publication that was packaged, and the actions on them. */
type PackagedOrigin = Omit<InputSigning, 'destination'>;

/**
 * Decides the ingredients of a publication that was packaged. Of media files, the one with the tallest video is the
 * parent (else the first), and the others are inputs, each with its own manifest chain: packaging changes the content of
 * none, and without `c2pa.placed` the publication is recognised as a rendition (C2PA 2.4 §18.15.9). With a given parent,
 * the file is a component if it carries a manifest. `sources` are the files that are packaged: what the SDK reads of them
 * is not fetched a second time.
 */
export async function packagedOrigin(
  task: PackagingTask,
  sources: LocalCopies,
  given: GivenOrigin,
  context: InputContext,
): Promise<PackagedOrigin> {
  const ingredients = await sourceIngredients(task, sources, context);
  const [main, ...others] = ingredients.values();
  if (main === undefined) throw new Error('a plan has at least one stream');
  const files = new Map([...ingredients].map(([path, { ingredient }]) => [path, ingredient]));
  const warnings = others.flatMap((other) => other.warnings);
  const creation = creationOf(given, [...files.values()]);
  if (creation !== null) {
    return withActions(task, createdIngredients(creation, [...main.warnings, ...warnings]), files);
  }
  const { roles, ...rest } = assignRoles(main, given !== null && 'parent' in given ? given : null);
  const inputs = others.map(({ ingredient }) => ingredient);
  return withActions(task, { roles: { ...roles, inputs }, warnings: [...rest.warnings, ...warnings] }, files);
}

function withActions(
  task: PackagingTask,
  { roles, warnings }: Ingredients,
  files: ReadonlyMap<string, IngredientSource>,
): PackagedOrigin {
  // No action says what was left out.
  const ingredients = { roles: { ...roles, isHistoryKnown: roles.isHistoryKnown && isWhole(task) }, warnings };
  return { ingredients, actions: packagingActions(task, ingredients, files) };
}

/** Tells whether the plan leaves nothing of the sources out. */
function isWhole({ plan: { leftOut, streams }, existing }: PackagingTask): boolean {
  const isCut = streams.some(({ undecodableSeconds }) => undecodableSeconds > 0);
  return leftOut.length === 0 && !isCut && (existing?.unchosen ?? []).length === 0;
}

/**
 * Returns the actions of packaging: every ingredient was repackaged, and each file transcoded of which a stream changed its
 * codec. `files` are the ingredients by the paths of their files.
 */
function packagingActions(
  { plan }: PackagingTask,
  { roles: { origin, inputs } }: Ingredients,
  files: ReadonlyMap<string, IngredientSource>,
): RecordedAction[] {
  const opened = origin.kind === 'created' ? [] : [origin];
  const transcoded = Map.groupBy(plan.streams.filter(isTranscoded), ({ file }) => file);
  return [
    { action: 'c2pa.repackaged', on: [...opened, ...inputs] },
    ...[...transcoded].map(([file, streams]): RecordedAction => {
      const ingredient = files.get(file);
      const conversions = streams.map(({ sourceCodec, codec }) => `${sourceCodec} to ${codec}`);
      return {
        action: 'c2pa.transcoded',
        on: ingredient === undefined ? [] : [ingredient],
        description: `${basename(file)}: ${[...new Set(conversions)].join(', ')}`,
      };
    }),
  ];
}

function isTranscoded({ route, container }: PlannedStream): boolean {
  return (route.kind === 'feed' && route.packets !== 'as-they-are') || (route.kind === 'text' && container !== 'vtt');
}

/** Returns the source files by their paths, in the order of their streams: the plan has the tallest video first. */
async function sourceIngredients(
  { folder, plan }: PackagingTask,
  sources: LocalCopies,
  context: InputContext,
): Promise<Map<string, UnassignedIngredient>> {
  const containers = new Map(plan.streams.map(({ file, container }) => [file, container]));
  const ingredients = new Map<string, UnassignedIngredient>();
  for (const [path, container] of containers) {
    ingredients.set(path, await sourceIngredient(folder, path, MEDIA_TYPES[container], sources, context));
  }
  return ingredients;
}

/** Returns the ingredient of a source file. The SDK reads a signed one by its path before the sources are released. */
async function sourceIngredient(
  folder: SourceFolder,
  path: string,
  mediaType: string,
  sources: LocalCopies,
  context: InputContext,
): Promise<UnassignedIngredient> {
  const source = await folder.open(path, context.signal);
  try {
    const file = await readSignableFile(source, context.signal);
    const isSigned = file.layout.manifest !== null;
    const described = isSigned ? await readSignableFile(await sources.of(path, context.signal), context.signal) : file;
    return await describeIngredient(described, context);
  } catch (error) {
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    return {
      ingredient: { kind: 'plain', title: source.name, mediaType },
      warnings:
        error.reason === 'FORMAT_UNKNOWN'
          ? []
          : [warning('SOURCE_NOT_SEARCHED', { file: path, cause: error.reason, problem: error.message })],
    };
  } finally {
    await source.close();
  }
}

/**
 * Decides the ingredients of a repackaged publication, like those of one that is signed as it is. Validates the copies on
 * this host that the packager reads.
 */
export async function existingOrigin(
  folder: PublicationFolder,
  existing: ExistingPublication,
  task: PackagingTask,
  sources: LocalCopies,
  given: GivenOrigin,
  context: VerificationContext,
): Promise<PackagedOrigin> {
  const carriers: ExistingRendition[] = [];
  for (const rendition of [...existing.renditions, ...existing.unchosen]) {
    const [init] = rendition.hasInit ? rendition.parts : [];
    if (init !== undefined && !(await isOtherContainer(folder, init, context.signal))) carriers.push(rendition);
  }
  const renditions = carriers.flatMap(({ parts: [init, ...fragments] }) =>
    init === undefined ? [] : [{ init, fragments }],
  );
  const inits = await readInits(folder, renditions, context.signal);
  const isSigned = inits.some(({ manifest }) => manifest !== null);
  const packaged = new Set(task.plan.streams.map(({ file }) => file));
  const copied = carriers.filter((rendition) => packaged.has(joinedName(rendition)));
  const read = isSigned ? publicationFolder(new CopiedParts(folder, copied, sources)) : folder;
  const publication = { folder: read, publication: { renditions }, inits };
  const { ingredients } = await publicationOrigin(publication, given, context);
  const { origin, isSourceOpened } = ingredients.roles;
  // All files are the one publication that was opened.
  const opened =
    isSourceOpened && origin.kind !== 'created' ? [...packaged].map((file) => [file, origin] as const) : [];
  return withActions(task, ingredients, new Map(opened));
}

/** Position of a part of a file in the local copy of the joined file. */
interface CopiedRange {
  readonly joined: string;
  /** Offset in the file of the folder. */
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
    const sizes = sizesIn(folder);
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
}
