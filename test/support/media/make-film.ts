import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeMedia } from './make-media.ts';

export const SECONDS = 8;

/** Runs ffmpeg in a folder; words of `rest` are separated by single spaces. */
export function ffmpeg(folder: string, inputs: readonly string[], rest: string): void {
  makeMedia(folder, [...inputs, ...rest.split(' ')]);
}

/** A film of 8 s with a key frame every second, and two tracks of sound, English and German: `film.mp4`. */
export function makeFilm(folder: string, name = 'film.mp4', size = '320x180'): string {
  const sound = (frequency: number) => ['-f', 'lavfi', '-i', `sine=f=${frequency}:r=48000:d=${SECONDS}`];
  ffmpeg(
    folder,
    ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=24:d=${SECONDS}`, ...sound(440), ...sound(880)],
    `-map 0 -map 1 -map 2 -c:v libx264 -preset ultrafast -g 24 -keyint_min 24 -sc_threshold 0 -pix_fmt yuv420p -c:a aac -ac 2 -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu -movflags +faststart ${name}`,
  );
  return join(folder, name);
}

/** Makes a film one of which players are to turn the picture clockwise, by a quarter (ISO/IEC 14496-12 §8.3.2). */
export function turnFilm(path: string): void {
  const bytes = readFileSync(path);
  const matrix = bytes.indexOf('tkhd') + 4 + 40;
  for (const [index, value] of [0, 0x10000, 0, -0x10000, 0, 0].entries()) bytes.writeInt32BE(value, matrix + 4 * index);
  writeFileSync(path, bytes);
}

/** Subtitles with two cues in the film and one past its end. */
export const SRT = `1
00:00:01,000 --> 00:00:03,000
Good <i>evening</i>

2
00:00:06,500 --> 00:00:12,000
to the end

3
00:01:00,000 --> 00:01:02,000
never seen
`;
