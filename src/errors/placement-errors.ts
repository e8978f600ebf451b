import { entry } from './entry.ts';

/** What can be wrong with the place that an output goes to. */
export const placementErrors = {
  OUTPUT_SEGMENT_INVALID: entry<{ field: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ field, problem }) => `${field} cannot be used as a part of the output's location: ${problem}.`,
  ),
  OUTPUT_TAKEN: entry<{ path: string }>(
    'VALIDATION_FAILED',
    ({ path }) =>
      `Another input of this request is written to "${path}". Give the inputs different names or submit them with different outputs.`,
  ),
  OUTPUT_TOUCHES_SOURCE: entry<{ path: string; source: string }>(
    'VALIDATION_FAILED',
    ({ path, source }) =>
      `The output "${path}" is, holds or lies inside "${source}", which this request reads. Choose another output.prefix or output.name.`,
  ),
  OUTPUT_LEAVES_BASE: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `A link on the way to "${path}" leads out of the base folder of outputs. Remove the link or choose another location.`,
  ),
  OUTPUT_IN_OWN_PLACE: entry<{ path: string }>(
    'VALIDATION_FAILED',
    ({ path }) =>
      `"${path}" is, holds or lies inside a place of the service itself (its data, configuration or keys), and no output is written there. Choose another output.prefix or output.name.`,
  ),
  OUTPUT_NAME_RESERVED: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The output cannot hold "${path}": names that start with ".attestream" belong to the service. Rename the file or folder.`,
  ),
  OUTPUT_LINK_DANGLING: entry<{ path: string; target: string }>(
    'PROCESSING_FAILED',
    ({ path, target }) =>
      `Outputs cannot be written: "${path}" is a link to "${target}", which does not exist. Make that folder, mount it, or correct the link.`,
    {
      operational: true,
      callersSee:
        'Outputs cannot be written: a link on the way to them leads nowhere. The operator corrects it; the log of the service names it.',
    },
  ),
  OUTPUT_IS_FOLDER: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) => `The output cannot be written: "${path}" is a folder. Remove it or choose another location.`,
  ),
  OUTPUT_IS_FILE: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The output cannot be written: "${path}" is to be a folder, and is a file or a link. Remove it or choose another location.`,
  ),
  OUTPUT_DISK_FULL: entry<{ path: string; neededBytes: number; freeBytes: number }>(
    'PROCESSING_FAILED',
    ({ path, neededBytes, freeBytes }) =>
      `"${path}" needs ${neededBytes} bytes and 1 MiB to spare, and its file system has ${freeBytes} free. Make room and submit the input again.`,
    { operational: true },
  ),
  OUTPUT_FAILED: entry<{ path: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ path, problem }) => `"${path}" could not be written: ${problem}.`,
    { operational: true },
  ),
};
