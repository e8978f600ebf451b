import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isXml } from '#publications/playlists/read-playlists.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { compareReadings } from './players/compare-readings.ts';
import { Ffmpeg } from './players/ffmpeg-reading.ts';
import { changeHls } from './players/mutate-hls.ts';
import { changeMpd } from './players/mutate-mpd.ts';

/** Playlists that ffmpeg, shaka-packager and mediabunny made of `makeFilm`, and others made by hand: a folder for each publication. */
const PLAYLISTS = fileURLToPath(new URL('./players/playlists', import.meta.url));

/** Returns the playlists that mutants are made of. */
export function playerSeeds(): Buffer[] {
  return readdirSync(PLAYLISTS, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(?:m3u8|mpd)$/.test(path))
    .sort()
    .map((path) => readFileSync(join(PLAYLISTS, path)));
}

/** Makes one to three changes: with more of them, nothing is accepted. */
export function mutatePlaylist(seed: Buffer, random: SeededRandom, other: Buffer): Buffer {
  const second = other.toString('utf8');
  let text = seed.toString('utf8');
  const change = isXml(text) ? changeMpd : changeHls;
  // Two playlists are merged where they are of one kind.
  const merged = isXml(text) === isXml(second) ? second : text;
  const count = random.pick([1, 1, 1, 2, 2, 3]);
  for (let made = 0; made < count; made += 1) text = change(text, random, merged);
  return Buffer.from(text);
}

let ffmpeg: Ffmpeg | undefined;

export const playerTargets: readonly FuzzTarget[] = [
  {
    name: 'players',
    seeds: playerSeeds,
    mutate: mutatePlaylist,
    run: async (input) => {
      const { differences } = await compareReadings(input.toString('utf8'));
      if (differences.length > 0)
        throw new Error(`players read a playlist that is accepted differently: ${differences.join('; ')}`);
    },
  },
  {
    name: 'players-ffmpeg',
    seeds: playerSeeds,
    mutate: mutatePlaylist,
    run: async (input) => {
      ffmpeg ??= await Ffmpeg.start();
      const difference = await ffmpeg.differenceOf(input.toString('utf8'));
      if (difference !== null) throw new Error(`ffmpeg opens ${difference}`);
    },
  },
];
