import type { SourceFolder } from '#bytes/source-folder.ts';
import { type C2paFragmentedParams, c2paFragmentedRequest } from '#contract/c2pa-publication-requests.ts';
import { readInits, readPublication } from '#publications/read-publication.ts';
import { signingTaskOf } from '#publications/signing-task.ts';
import type { InputContext, InputOutcome, InputWork, Operation, OperationServices } from './operation.ts';
import { givenOrigin } from './origin.ts';
import { publicationOrigin, signForInput, verificationContext } from './publication-ingredients.ts';
import { validateFolderInputs } from './validation/validate-inputs.ts';
import { folderLeaf } from './validation/validate-outputs.ts';
import { validateSigning } from './validation/validate-signing.ts';

/**
 * Signs fragmented publications: reads which fragments belong to which init segment, writes and hashes every fragment
 * once, has the SDK sign one manifest over all renditions, puts it into every init segment, and commits the folder.
 */
export const signFragmented: Operation<InputOutcome> = {
  name: 'c2pa-fragmented',
  path: '/c2pa/fragmented',
  summary: 'Sign fragmented publications',
  request: c2paFragmentedRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    await validateSigning(request, folderLeaf, context);
  },
  run: signFolder,
};

async function signFolder(work: InputWork, context: InputContext, services: OperationServices): Promise<InputOutcome> {
  const folder = await services.inputs.openFolder(work.input, work.inputIndex, {
    ...context,
    playlistPattern: (work.params as C2paFragmentedParams).playlist_pattern,
  });
  try {
    return await signOpened(folder, work, context, services);
  } finally {
    await folder.close();
  }
}

async function signOpened(
  folder: SourceFolder,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const params = work.params as C2paFragmentedParams;
  const publication = await readPublication(folder, patternsOf(params), context.signal);
  const inits = await readInits(folder, publication.renditions, context.signal);
  const destination = services.outputs.folderDestination(work.output, folder.name);
  await context.reserveOutputPath(destination);
  context.reached('resolved');

  const read = { folder, publication, inits };
  const given = await givenOrigin(params, work.inputIndex, services, context);
  const { ingredients, contents } = await publicationOrigin(read, given, verificationContext(context, services));
  const statement = { ingredients, actions: [], destination };
  return await signForInput(signingTaskOf(read, contents), statement, work, context, services);
}

function patternsOf(params: C2paFragmentedParams) {
  return { playlist: params.playlist_pattern, init: params.init_pattern, frag: params.frag_pattern };
}
