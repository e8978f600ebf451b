import type { LocalCopies } from '#bytes/local-copies.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { sourceErrors } from '#errors/source-errors.ts';
import { warning } from '#errors/warning.ts';
import type { ContainerKind } from '#packaging/probing/probed-file.ts';
import type { RecordedAction } from '#provenance/authoring/manifest-author.ts';
import { identifyFile } from './identify-file.ts';
import { type Candidate, carriesManifest, fileCandidate, type Ingredients } from './ingredients.ts';
import type { PackagingTask } from './make-publication.ts';
import type { InputContext } from './operation.ts';

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

/**
 * Decides the ingredients of a publication that was packaged. Of media files, the one with the tallest video is the
 * parent (else the first), and the others are components, each with its own manifest chain. `sources` are the files that
 * are packaged: what the SDK reads of them is not fetched a second time.
 */
export async function packagedIngredients(
  task: PackagingTask,
  sources: LocalCopies,
  given: Candidate | null,
  context: InputContext,
): Promise<Ingredients> {
  const [main, ...others] = await sourceCandidates(task, sources, context);
  if (main === undefined) throw new Error('a plan has at least one stream');
  const parent = given ?? main;
  const components = given === null || !carriesManifest(main.ingredient) ? others : [main, ...others];
  return {
    roles: {
      parent: parent.ingredient,
      components: components.map(({ ingredient }) => ingredient),
      allActionsIncluded: given === null,
    },
    warnings: [...new Set([main, parent, ...others])].flatMap(({ warnings }) => warnings),
  };
}

/** What happened to the parent: its streams were packaged, and where one changed its codec, transcoded. */
export function packagingActions({ plan }: PackagingTask): RecordedAction[] {
  const isTranscoded = plan.streams.some(
    ({ route, container }) =>
      (route.kind === 'feed' && route.packets !== 'as-they-are') || (route.kind === 'text' && container !== 'vtt'),
  );
  return isTranscoded ? ['c2pa.repackaged', 'c2pa.transcoded'] : ['c2pa.repackaged'];
}

/** The source files in the order of their streams: the plan has the tallest video first. */
async function sourceCandidates(
  { folder, plan }: PackagingTask,
  sources: LocalCopies,
  context: InputContext,
): Promise<Candidate[]> {
  const containers = new Map(plan.streams.map(({ file, container }) => [file, container]));
  const candidates: Candidate[] = [];
  for (const [path, container] of containers) {
    candidates.push(await sourceCandidate(folder, path, MEDIA_TYPES[container], sources, context));
  }
  return candidates;
}

/** The SDK reads what is signed by its path when the manifest is drafted, which is before the sources are released. */
async function sourceCandidate(
  folder: SourceFolder,
  path: string,
  mediaType: string,
  sources: LocalCopies,
  context: InputContext,
): Promise<Candidate> {
  const source = await folder.open(path, context.signal);
  try {
    const file = await identifyFile(source, context.signal);
    const isSigned = file.layout.manifest !== null;
    return await fileCandidate(isSigned ? { ...file, source: await sources.of(path, context.signal) } : file, context);
  } catch (error) {
    if (!(error instanceof AppError) || Object.hasOwn(sourceErrors, error.reason)) throw error;
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
