import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blobOf, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { isOfTrust } from './file-judges.ts';

/** Returns the findings of the WASM reader of the reference implementation on one fragment; none where it is valid. */
export async function problemsOf(init: Uint8Array, fragment: Uint8Array): Promise<string[]> {
  const WasmReader = await wasmReader();
  try {
    const reader = await WasmReader.fromBlobFragment('video/mp4', blobOf(init), blobOf(fragment));
    const report = JSON.parse(reader.json()) as { validation_state: string; validation_status?: { code: string }[] };
    const codes = (report.validation_status ?? []).map(({ code }) => code);
    const problems = codes.filter((code) => !isOfTrust(code));
    return report.validation_state === 'Valid' ? problems : [report.validation_state, ...problems];
  } catch (error) {
    return [String(error)];
  }
}

/** The frames of single files by the hash of their content: several outputs are compared with one source. */
const known = new Map<string, string>();

/** The MD5 of every frame that ffmpeg decodes of what `path` names. */
export function decodedFrames(path: string): string {
  const decode = () => allDecodedFrames([path])[0] as string;
  // A playlist says nothing of what is in its segments.
  if (/\.(?:m3u8|mpd)$/.test(path)) return decode();
  const content = hash('sha256', readFileSync(path));
  const frames = known.get(content) ?? decode();
  known.set(content, frames);
  return frames;
}

/** The same of several paths, by one start of ffmpeg, which takes a fifth of a second of processor time. */
export function allDecodedFrames(paths: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'frames-'));
  try {
    const inputs = paths.flatMap((path) => [
      ...(path.endsWith('.m3u8') ? ['-allowed_extensions', 'ALL'] : []),
      ...['-i', path],
    ]);
    const outputs = paths.flatMap((_, index) => ['-map', `${index}`, '-f', 'framemd5', join(folder, `${index}`)]);
    execFileSync('ffmpeg', ['-v', 'error', ...inputs, ...outputs], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // It waits for more where it takes a manifest for a live one, and ends on nothing less.
      timeout: 600_000,
      killSignal: 'SIGKILL',
    });
    return paths.map((path, index) => {
      const frames = readFileSync(join(folder, `${index}`), 'utf8');
      assert.ok(frames.split('\n').length > 10, `frames of ${path} were decoded`);
      return frames;
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Asserts that the same files in two folders decode to the same frames. */
export function assertSameFrames(folder: string, other: string, names: readonly string[]): void {
  const frames = allDecodedFrames([folder, other].flatMap((at) => names.map((name) => join(at, name))));
  for (const [index, name] of names.entries()) assert.equal(frames[index], frames[names.length + index], name);
}
