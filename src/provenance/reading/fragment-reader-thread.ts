import { parentPort } from 'node:worker_threads';
import type { FragmentQuestion } from './fragment-reader.ts';
import { readFragment } from './read-fragment.ts';

// A thread of `createFragmentReader`: answers one question after the other.
parentPort?.on('message', async ({ init, fragment }: FragmentQuestion) => {
  parentPort?.postMessage(await readFragment(init, fragment));
});
