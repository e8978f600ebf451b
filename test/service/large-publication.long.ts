import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { writePublication } from '../../bench/publication-media.ts';
import { startService } from '../../scripts/running-service.ts';
import { problemsOf } from '../support/judges/publication-judges.ts';
import { c2paBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FRAGMENT_COUNT = 10_000;
const FRAGMENT_BYTES = 1_400;
/** Limit of the manifest in an init segment, which a player has to load before it can start. */
const MAX_MANIFEST_BYTES = 64 * 1024;
/** The longest proof in bytes beside what a Merkle box takes anyway: five SHA-256 digests. */
const MAX_MERKLE_BOX_BYTES = 260;
/** First, last, around the edges of groups, and some between. */
const SAMPLE = [0, 1, 31, 32, 33, 255, 256, 4_095, 5_000, 7_777, 9_983, 9_984, 9_998, 9_999];

test('A publication of 10,000 fragments keeps its manifest small, and its fragments carry proofs', async () => {
  const folder = temporaryFolder();
  const shape = { renditions: 1, fragments: FRAGMENT_COUNT, fragmentBytes: FRAGMENT_BYTES };
  const source = await writePublication(join(folder, 'long'), shape);
  await using service = await startService({ folder: join(folder, 'service') });

  const job = await service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path: source }],
    params: { playlist_pattern: '*.m3u8', init_pattern: 'init.mp4', frag_pattern: '*.m4s' },
  });

  const [result] = job.results;
  assert.equal(job.status, 'succeeded', result?.error);
  const output = (name: string): Buffer => readFileSync(join(result?.output_path as string, 'rendition-1', name));
  const init = output('init.mp4');
  assert.ok((c2paBoxesOf(init, 'manifest')[0]?.bytes.length as number) < MAX_MANIFEST_BYTES);
  for (const number of SAMPLE) {
    const fragment = output(`${number + 1}.m4s`);
    const [merkle] = c2paBoxesOf(fragment, 'merkle');
    assert.ok(merkle !== undefined && merkle.bytes.length <= MAX_MERKLE_BOX_BYTES);
    assert.deepEqual(await problemsOf(init, fragment), [], `fragment ${number}`);
  }
  const other = output('5001.m4s');
  const [start, end] = [other.indexOf('moof') - 4, other.length];
  const swapped = Buffer.concat([
    output('5000.m4s').subarray(0, output('5000.m4s').indexOf('moof') - 4),
    other.subarray(start, end),
  ]);
  assert.notDeepEqual(await problemsOf(init, swapped), [], 'a fragment in the place of another');
});
