import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The packets of a stream of a file by their hashes, as ffmpeg's demuxer reads them; `stream` is like `v:0`. */
export function packetHashes(file: string, stream = '0'): string[] {
  const args = ['-v', 'error', '-i', file, '-map', `0:${stream}`, '-c', 'copy', '-f', 'framemd5', '-'];
  return hashesIn(execFileSync('ffmpeg', args, { encoding: 'utf8', maxBuffer: 1 << 28 }));
}

/** The samples of a stream of sound by the hash of all, decoded. */
export function sampleHash(file: string, stream = '0'): string {
  const args = ['-v', 'error', '-i', file, '-map', `0:${stream}`, '-c:a', 'pcm_s24le', '-f', 'md5', '-'];
  return execFileSync('ffmpeg', args, { encoding: 'utf8' }).trim();
}

function hashesIn(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(',')[5]?.trim() ?? '');
}

/** The segments of a rendition, joined to one file beside it, which any demuxer reads. */
export function joinRendition(folder: string): string {
  const segments = readdirSync(folder)
    .filter((name) => name.endsWith('.m4s'))
    .sort();
  const path = `${folder}.joined.mp4`;
  writeFileSync(path, Buffer.concat(['init.mp4', ...segments].map((name) => readFileSync(join(folder, name)))));
  return path;
}
