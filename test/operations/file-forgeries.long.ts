import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SeededRandom } from '../support/seeded-random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { randomForgery } from '../support/verification/file-forgeries.ts';
import { CONTAINERS, decoded, makeSigned, otherMedia, verdictOn } from '../support/verification/forged-files.ts';

/** Forgeries of each container; `FORGED_COPIES=225` makes 2,025 together. */
const COPIES = Number(process.env['FORGED_COPIES'] ?? 50);
const SEED = 41;
/** Has ffmpeg decode all forgeries, to count those that play something else; by default those that are accepted. */
const DECODES_ALL = process.env['FORGERIES_DECODED'] === 'all';

describe('no forgery without a key is accepted where ffmpeg decodes something else', () => {
  for (const name of Object.keys(CONTAINERS)) {
    test(`of ${name}`, async (context) => {
      const folder = temporaryFolder();
      const file = await makeSigned(name, folder);
      const own = decoded(name, file.bytes, folder);
      const media = otherMedia(name, file);
      const counts: Record<string, number> = {};
      for (let round = 0; round < COPIES; round += 1) {
        const { bytes, change } = randomForgery(file, media, new SeededRandom(SEED, round));
        const { state } = await verdictOn(name, { [name]: bytes }, folder);
        const isAccepted = state === 'valid' || state === 'trusted';
        const plays = isAccepted || DECODES_ALL ? decoded(name, bytes, folder) === own : null;
        assert.ok(!isAccepted || plays, `round ${round}: ${change} is ${state}`);
        assert.notEqual(state, 'none', `round ${round}: ${change}`);
        const outcome = `${state}${plays === null ? '' : plays ? ', plays the same' : ', plays something else'}`;
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      }
      context.diagnostic(`${name}: ${JSON.stringify(counts)}`);
    });
  }
});
