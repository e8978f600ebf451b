import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { blobOf, wasmReader } from '#provenance/reading/wasm-reader.ts';

/** Returns the findings of the WASM reader of the reference implementation on one fragment; none where it is valid. */
export async function problemsOf(init: Uint8Array, fragment: Uint8Array): Promise<string[]> {
  const WasmReader = await wasmReader();
  try {
    const reader = await WasmReader.fromBlobFragment('video/mp4', blobOf(init), blobOf(fragment));
    const report = JSON.parse(reader.json()) as { validation_state: string; validation_status?: { code: string }[] };
    const codes = (report.validation_status ?? []).map(({ code }) => code);
    const problems = codes.filter((code) => code !== 'signingCredential.untrusted');
    return report.validation_state === 'Valid' ? problems : [report.validation_state, ...problems];
  } catch (error) {
    return [String(error)];
  }
}

/** The MD5 of every frame that ffmpeg decodes of what `path` names. */
export function decodedFrames(path: string): string {
  const demuxing = path.endsWith('.m3u8') ? ['-allowed_extensions', 'ALL'] : [];
  const frames = execFileSync('ffmpeg', ['-v', 'error', ...demuxing, '-i', path, '-map', '0', '-f', 'framemd5', '-'], {
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'pipe'],
    // It waits for more where it takes a manifest for a live one, and ends on nothing less.
    timeout: 60_000,
    killSignal: 'SIGKILL',
  }).toString('utf8');
  assert.ok(frames.split('\n').length > 10, 'frames were decoded');
  return frames;
}
