import { entry } from './entry.ts';

/** What can be wrong with an input before its format is looked at. */
export const sourceErrors = {
  SOURCE_ENDED_EARLY: entry<{ name: string; offset: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, sizeBytes }) =>
      `"${name}" ended at byte ${offset}, before the ${sizeBytes} bytes it had when it was opened. It changed while it was read: submit it again when it is complete.`,
  ),
  SOURCE_READ_FAILED: entry<{ name: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ name, offset, problem }) => `Reading "${name}" failed at byte ${offset}: ${problem}.`,
  ),
};
