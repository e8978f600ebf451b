import { LocalCopies } from '#bytes/local-copies.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { C2paPackageParams } from '#contract/c2pa-package-request.ts';
import type { Warning } from '#errors/warning.ts';
import { PackagedFolder } from '#packaging/packaged-folder.ts';
import type { Publication } from '#publications/publication.ts';
import { claimStated } from '#publications/reading/claim-stated.ts';
import { type ClaimedPaths, matchingPaths } from '#publications/reading/path-patterns.ts';
import { readClaimedPublication } from '#publications/reading/read-publication.ts';
import type { ChoicePatterns } from '#publications/repackaging/choose-renditions.ts';
import { readInitLayouts } from '#publications/signing/sign-rendition.ts';
import { existingOrigin } from './existing-origin.ts';
import { describeFinding, growthOf, unsignedFragments } from './existing-tracks.ts';
import { givenIngredient } from './ingredients.ts';
import { type PackagingTask, planPublication, sizeOfSources } from './make-publication.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import { packagedIngredients, packagingActions } from './packaged-ingredients.ts';
import { publicationOrigin, validationContext } from './publication-ingredients.ts';
import { signAndDeliver } from './sign-and-deliver.ts';
import { packagingTaskOf } from './sign-while-packaging.ts';
import { taskOf } from './signing-task.ts';
import { refuseWarnings } from './strict.ts';

/** What one input is done with. */
interface Signing {
  readonly folder: SourceFolder;
  readonly params: C2paPackageParams;
  readonly work: InputWork;
  readonly context: InputContext;
  readonly rooms: OperationRooms;
}

/**
 * Packages one folder of media as HLS and DASH over the same segments, and signs the publication. A folder that is a
 * publication of CMAF already is signed as it is.
 */
export async function packageAndSign(
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const params = work.params as C2paPackageParams;
  const { playlist_pattern: playlistPattern } = params;
  const folder = await rooms.inputs.openFolder(work.input, work.inputIndex, {
    ...context,
    ...(typeof playlistPattern === 'string' && { playlistPattern }),
  });
  try {
    return await signOpened({ folder, params, work, context, rooms });
  } finally {
    await folder.close();
  }
}

async function signOpened(signing: Signing): Promise<InputOutcome> {
  const { folder, params, context } = signing;
  const chosen = chosenPaths(folder, params);
  if (chosen !== null) return await signExisting(chosen, [], signing);
  const task = await planPublication(folder, params, patternsOf(params), context.signal);
  if (task.kind === 'package') return await packageThenSign(task, signing);
  const found = claimed(folder, params, claimStated(folder, task.existing.playlists));
  const isChosen = typeof params.frag_pattern === 'string';
  const unsigned = isChosen ? [] : unsignedFragments(folder, new Set([...found.fragments, ...found.inits]));
  const warnings = [...describeFinding(task.existing, 'signed', params), ...growthOf(task.existing), ...unsigned];
  return await signExisting(found, warnings, signing);
}

function patternsOf(params: C2paPackageParams): ChoicePatterns {
  const { playlist_pattern: playlist = null, init_pattern: init = null, frag_pattern: frag = null } = params;
  return { playlist, init, frag };
}

/** What the patterns choose where there is no playlist: init segments and fragments that are signed as they are. */
function chosenPaths(folder: SourceFolder, params: C2paPackageParams): ClaimedPaths | null {
  const { playlist_pattern: playlist, init_pattern: init, frag_pattern: frag } = params;
  const isPlayed = folder.files.some(({ path }) => /\.(?:m3u8|mpd)$/i.test(path));
  if (isPlayed || typeof playlist === 'string' || typeof init !== 'string' || typeof frag !== 'string') return null;
  return claimed(folder, params, { playlists: new Set(), inits: new Set(), fragments: new Set() });
}

/** What is signed of a publication: what the patterns choose, and what they leave open as it was found. */
function claimed(folder: SourceFolder, params: C2paPackageParams, found: ClaimedPaths): ClaimedPaths {
  const paths = folder.files.map(({ path }) => path);
  const { init_pattern: init, frag_pattern: frag } = params;
  return {
    playlists: found.playlists,
    inits: typeof init === 'string' ? matchingPaths(paths, init, 'params.init_pattern') : found.inits,
    fragments: typeof frag === 'string' ? matchingPaths(paths, frag, 'params.frag_pattern') : found.fragments,
  };
}

/** Signs a folder that is a publication already. */
async function signExisting(
  paths: ClaimedPaths,
  found: readonly Warning[],
  { folder, params, work, context, rooms }: Signing,
): Promise<InputOutcome> {
  refuseWarnings(found, params);
  const read = await withInits(folder, await readClaimedPublication(folder, paths, context.signal), context);
  const destination = await claimDestination(folder, work, context, rooms);
  const given = await givenIngredient(params, work.inputIndex, rooms.inputs, context);
  const { ingredients, contents } = await publicationOrigin(read, given, validationContext(context, rooms));
  const statement = { assertions: params.assertions ?? [], ingredients, actions: [] };
  const { warnings, ...outcome } = await signAndDeliver(
    taskOf(read, contents),
    statement,
    destination,
    work,
    context,
    rooms,
  );
  return { ...outcome, warnings: [...found, ...warnings] };
}

/**
 * Packages into scratch, from where the signed publication is written: every segment is read once more, from memory where
 * there is enough of it, and only what is signed is made durable.
 */
async function packageThenSign(
  task: PackagingTask,
  { folder, params, work, context, rooms }: Signing,
): Promise<InputOutcome> {
  const destination = await claimDestination(folder, work, context, rooms);
  const sources = new LocalCopies(task.folder, context.scratch);
  const scratch = await context.scratch.reserveFolder('packaged', sizeOfSources(task));
  try {
    const given = await givenIngredient(params, work.inputIndex, rooms.inputs, context);
    const ingredients =
      task.existing === null
        ? await packagedIngredients(task, sources, given, context)
        : await existingOrigin(folder, task.existing, task, sources, given, validationContext(context, rooms));
    const statement = { assertions: params.assertions ?? [], ingredients, actions: packagingActions(task) };
    const target = new PackagedFolder(task.folder.name, scratch.path);
    const [packaging, signing] = halvesOf(context);
    const signingTask = packagingTaskOf({ task, sources, target, context: packaging });
    const outcome = await signAndDeliver(signingTask, statement, destination, work, signing, rooms);
    return outcome;
  } finally {
    await sources.release();
    scratch.release();
  }
}

async function claimDestination(
  { name }: SourceFolder,
  { output }: InputWork,
  context: InputContext,
  { outputs }: OperationRooms,
): Promise<string> {
  const destination = outputs.placeFolder(output, name);
  await context.claimDestination(destination);
  context.reached('resolved');
  return destination;
}

async function withInits(folder: SourceFolder, publication: Publication, { signal }: InputContext) {
  return { folder, publication, inits: await readInitLayouts(folder, publication.renditions, signal) };
}

/** The contexts of two steps that go on side by side, each of which is half of the work. */
function halvesOf(context: InputContext): [InputContext, InputContext] {
  const doneBytes = [0, 0];
  const half = (index: number): InputContext => ({
    ...context,
    progress: (bytes, bytesTotal) => {
      doneBytes[index] = bytes;
      context.progress(
        doneBytes.reduce((sum, done) => sum + done),
        2 * bytesTotal,
      );
    },
  });
  return [half(0), half(1)];
}
