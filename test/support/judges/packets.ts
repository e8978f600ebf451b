import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/**
 * The packets of a stream of a file by their hashes, as ffmpeg's demuxer reads them; `stream` is like `v:0`. `output` and
 * `input` are further options.
 */
export function packetHashes(
  file: Media,
  stream = '0',
  output: readonly string[] = [],
  input: readonly string[] = [],
): string[] {
  return frameMd5(file, stream, ['-c', 'copy', ...output], input);
}

/** The pictures of a stream of a file by their hashes, decoded. */
export function frameHashes(file: Media, stream = '0'): string[] {
  return frameMd5(file, stream, [], []);
}

function frameMd5(file: Media, stream: string, output: readonly string[], input: readonly string[]): string[] {
  return hashesIn(ffmpegOn(file, input, ['-map', `0:${stream}`, ...output, '-f', 'framemd5', '-']));
}

/** The samples of a stream of sound by the hash of all, decoded. */
export function sampleHash(file: Media, stream = '0'): string {
  return ffmpegOn(file, [], ['-map', `0:${stream}`, '-c:a', 'pcm_s24le', '-f', 'md5', '-']).trim();
}

/** A file, or what would be in one. */
type Media = string | Buffer;

/** What ffmpeg said of media in one file, which tests compare several outputs with. */
const known = new Map<string, string>();

function ffmpegOn(media: Media, input: readonly string[], output: readonly string[]): string {
  const [path, bytes] = typeof media === 'string' ? [media] : ['pipe:0', media];
  const args = ['-v', 'error', ...input, '-i', path, ...output];
  const run = () => execFileSync('ffmpeg', args, { input: bytes, encoding: 'utf8', maxBuffer: 1 << 28 });
  // A playlist says nothing of what is in its segments.
  if (/\.(?:m3u8|mpd)$/.test(path)) return run();
  const content = hash('sha256', bytes ?? readFileSync(path));
  const key = [content, extname(path), ...input, ...output].join('\0');
  const answer = known.get(key) ?? run();
  known.set(key, answer);
  return answer;
}

function hashesIn(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(',')[5]?.trim() ?? '');
}

/** The segments of a rendition joined, as any demuxer reads them. */
export function joinRendition(folder: string): Buffer {
  const segments = readdirSync(folder)
    .filter((name) => name.endsWith('.m4s'))
    .sort();
  return Buffer.concat(['init.mp4', ...segments].map((name) => readFileSync(join(folder, name))));
}
