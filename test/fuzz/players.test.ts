import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SeededRandom } from '../support/seeded-random.ts';
import { mutatePlaylist, playerSeeds } from './player-targets.ts';
import { compareReadings } from './players/compare-readings.ts';

/** Mutants of a fixed seed; `npm run fuzz -- players` makes others. */
const MUTANTS = 3_000;
const SEED = 1;

describe('players decide', () => {
  test('accepts every playlist of ffmpeg, shaka-packager, mediabunny and by hand, and reads it as players do', async () => {
    const parsers = new Set<string>();
    for (const seed of playerSeeds()) {
      const text = seed.toString('utf8');
      const { isAccepted, readBy, differences } = await compareReadings(text);
      assert.ok(isAccepted && readBy.length > 0, text);
      assert.deepEqual(differences, [], text);
      for (const name of readBy) parsers.add(name);
    }
    assert.deepEqual([...parsers].sort(), ['hls-parser', 'hls.js', 'm3u8-parser', 'mpd-parser']);
  });

  test('reads what every player reads of a mutant that it accepts', async () => {
    const seeds = playerSeeds();
    let accepted = 0;
    for (let index = 0; index < MUTANTS; index += 1) {
      const random = new SeededRandom(SEED, index);
      const mutant = mutatePlaylist(random.pick(seeds), random, random.pick(seeds)).toString('utf8');
      const { isAccepted, differences } = await compareReadings(mutant);
      assert.deepEqual(differences, [], mutant);
      if (isAccepted) accepted += 1;
    }
    // Where nearly everything is refused, nothing is compared.
    assert.ok(accepted > MUTANTS / 10, `${accepted} mutants are accepted`);
  });
});
