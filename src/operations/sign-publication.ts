import type { SourceFolder } from '#bytes/source-folder.ts';
import type { C2paFragmentedParams } from '#contract/c2pa-fragmented-request.ts';
import { readPublication } from '#publications/reading/read-publication.ts';
import { readInitLayouts } from '#publications/signing/sign-rendition.ts';
import { givenIngredient } from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import { publicationOrigin, validationContext } from './publication-ingredients.ts';
import { signAndDeliver } from './sign-and-deliver.ts';
import { taskOf } from './signing-task.ts';

/**
 * Signs one fragmented publication: reads which fragments belong to which init segment, writes and hashes every fragment
 * once, has the SDK sign one manifest over all renditions, puts it into every init segment, and lands the folder whole.
 */
export async function signPublication(
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const folder = await rooms.inputs.openFolder(work.input, work.inputIndex, {
    ...context,
    playlistPattern: (work.params as C2paFragmentedParams).playlist_pattern,
  });
  try {
    return await signFolder(folder, work, context, rooms);
  } finally {
    await folder.close();
  }
}

async function signFolder(
  folder: SourceFolder,
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const params = work.params as C2paFragmentedParams;
  const publication = await readPublication(folder, patternsOf(params), context.signal);
  const inits = await readInitLayouts(folder, publication.renditions, context.signal);
  const destination = rooms.outputs.placeFolder(work.output, folder.name);
  await context.claimDestination(destination);
  context.reached('resolved');

  const read = { folder, publication, inits };
  const given = await givenIngredient(params, work.inputIndex, rooms.inputs, context);
  const { ingredients, contents } = await publicationOrigin(read, given, validationContext(context, rooms));
  const statement = { assertions: params.assertions ?? [], ingredients, actions: [] };
  return await signAndDeliver(taskOf(read, contents), statement, destination, work, context, rooms);
}

function patternsOf(params: C2paFragmentedParams) {
  return { playlist: params.playlist_pattern, init: params.init_pattern, frag: params.frag_pattern };
}
