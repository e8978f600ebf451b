import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Verification } from '#contract/verification.ts';
import { AppError } from '#errors/app-error.ts';
import { formatOf } from '#formats/formats.ts';
import { signBytes } from '../judges/file-judges.ts';
import { makeMedia } from '../media/make-media.ts';
import { writeFiles } from '../publications/make-folder.ts';
import { type SignedFile, takeApart } from './file-forgeries.ts';
import { verifyInput } from './verify-input.ts';

const PICTURE = '-f lavfi -i testsrc2=s=64x48:r=10:d=1';
const SOUND = '-f lavfi -i sine=r=8000:d=1';
const VIDEO = `${PICTURE} ${SOUND} -c:v libx264 -preset ultrafast -c:a aac`;

/** A short file of every container that the service signs, by its name: the arguments that ffmpeg makes it with. */
export const CONTAINERS: Readonly<Record<string, string>> = {
  'film.mp4': VIDEO,
  'film.mov': VIDEO,
  'fragmented.mp4': `${VIDEO} -movflags frag_keyframe+empty_moov`,
  'sound.m4a': `${SOUND} -c:a aac`,
  'film.avi': `${PICTURE} ${SOUND} -c:v mpeg4 -c:a mp3`,
  'sound.wav': `${SOUND} -c:a pcm_s16le`,
  'wide.wav': `${SOUND} -c:a pcm_s16le -rf64 always`,
  'sound.mp3': `${SOUND} -c:a mp3`,
  'sound.flac': `${SOUND} -c:a flac`,
};

/** The padding of a signature, into which a forger puts something else. */
const PADDING_BYTES = 20_000;

/** Makes and signs a file of a container; `label` is that of its manifest in place of a random one. */
export async function makeSigned(name: string, folder: string, label?: string): Promise<SignedFile> {
  makeMedia(folder, [...(CONTAINERS[name] as string).split(' '), name]);
  const source = readFileSync(join(folder, name));
  const format = formatOf(source);
  if (format === undefined) throw new Error(`${name} is of no known format`);
  return await takeApart(await signBytes(format, source, { slackBytes: PADDING_BYTES, label }));
}

/** Returns bytes that play in a container where players find them: other sound in WAV, else the media of the file again. */
export function otherMedia(name: string, { bytes }: SignedFile): Buffer {
  if (name.endsWith('.wav')) return Buffer.from(Array.from({ length: 16_000 }, (_, index) => (index * 37) % 251));
  return Buffer.from(bytes.subarray(Math.max(bytes.indexOf('movi'), 0)));
}

/** Returns what ffmpeg decodes of a file as an MD5; its complaint where it decodes nothing. */
export function decoded(name: string, bytes: Uint8Array, folder: string): string {
  const path = join(folder, `decoded-${name}`);
  writeFileSync(path, bytes);
  try {
    return execFileSync('ffmpeg', ['-v', 'quiet', '-i', path, '-map', '0', '-f', 'md5', '-'], {
      stdio: 'pipe',
    }).toString();
  } catch {
    return 'nothing';
  }
}

let count = 0;

/** Verifies a file, beside others, in a folder of its own; an error that names a reason is a verdict as well. */
export async function verdictOn(
  name: string,
  files: Readonly<Record<string, Uint8Array>>,
  folder: string,
  sidecar?: string,
): Promise<Pick<Verification, 'state' | 'codes'> | { readonly state: 'refused'; readonly reason: string }> {
  const home = writeFiles(join(folder, `case-${count++}`), files);
  try {
    const source = { type: 'local_file_path', path: join(home, sidecar ?? '') } as const;
    const asked = sidecar === undefined ? {} : { params: { sidecars: [{ input_index: 0, source }] } };
    return (await verifyInput({ type: 'local_file_path', path: join(home, name) }, home, asked)).verification;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { state: 'refused', reason: error.reason };
  }
}
