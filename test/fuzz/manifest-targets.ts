import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMerkleBox } from '#formats/isobmff-boxes.ts';
import { answerOf } from '#provenance/reading/reader-thread.ts';
import { verifyParts } from '#publications/verification/part-findings.ts';
import { readStoredBinding } from '#publications/verification/stored-binding.ts';
import { requestWith, testAuthor } from '../support/manifests/sign-wav.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { type FuzzTarget, mayRefuse } from './fuzz-target.ts';
import { seedFiles } from './make-seeds.ts';
import { mutateBytes } from './mutate-bytes.ts';

const { signal } = new AbortController();
/** Verifies a publication of one fragment against its manifest, as it is done before it is signed again. */
async function verify(input: Buffer): Promise<void> {
  const [init, fragment] = cut(input);
  const parts = [{ init: { path: 'init', range: null }, fragments: [{ path: 'fragment', range: null }] }];
  await verifyParts(folderOf({ init, fragment }), parts, signal);
  const store = input.indexOf('jumb', 0, 'latin1') - 4;
  if (store >= 0) readStoredBinding(input.subarray(store));
  readMerkleBox(fragment.subarray(fragment.indexOf('merkle\0', 0, 'latin1') + 7));
}

let author: ReturnType<typeof testAuthor> | undefined;
const file = join(tmpdir(), `attestream-fuzz-${process.pid}.wav`);

/** Has the SDK read a file as an ingredient, with all it validates. */
async function readAsParent(input: Buffer): Promise<void> {
  author ??= testAuthor();
  await writeFile(file, input);
  const parent = { kind: 'file', path: file, title: 'input.wav', mediaType: 'audio/wav' } as const;
  await author.draft(requestWith({ origin: parent }), signal);
}

/** Splits an input in two: the init segment with its manifest, and a fragment. */
function cut(input: Buffer): [Buffer, Buffer] {
  const at = input.indexOf('moof', 0, 'latin1') - 4;
  return at < 0 ? [input, input] : [input.subarray(0, at), input.subarray(at)];
}

function signedParts(folder: string): Buffer[] {
  const [init = Buffer.alloc(0)] = seedFiles(folder, 'signed', /^init-stream1/);
  return seedFiles(folder, 'signed', /^chunk-stream1/).map((fragment) => Buffer.concat([init, fragment]));
}

export const manifestTargets: readonly FuzzTarget[] = [
  {
    name: 'manifest-store',
    seeds: signedParts,
    mutate: mutateBytes,
    run: (input) => mayRefuse(() => verify(input)),
  },
  {
    name: 'sdk-ingredient',
    seeds: (folder) => seedFiles(folder, 'store', /wav$/),
    mutate: mutateBytes,
    run: (input) => mayRefuse(() => readAsParent(input)),
  },
  {
    name: 'wasm-fragment',
    seeds: signedParts,
    mutate: mutateBytes,
    run: async (input) => {
      const [init, fragment] = cut(input);
      await answerOf({ asset: { init, fragment }, answer: 'report', anchors: null });
    },
  },
];
