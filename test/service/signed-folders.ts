import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Verification } from '#contract/verification.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

export const SAMPLE = fileURLToPath(new URL('../../samples/publication', import.meta.url));
export const PATTERNS = {
  playlist_pattern: '*.{m3u8,mpd}',
  init_pattern: 'init-*.mp4',
  frag_pattern: 'fragment-*.m4s',
};
export const AS_SIGNED = 'Unchanged: media, playlists, text and pictures are as they were signed.';

/** Signs a folder by an operation, and returns the folder of the output. */
export async function signFolder(
  service: RunningService,
  path: string,
  input: string,
  params: object,
  output?: object,
): Promise<string> {
  const inputs = [{ type: 'local_folder_path', path: input }];
  const { results } = await service.runSync(path, { inputs, params, ...(output && { output }) });
  assert.equal(results[0]?.status, 'succeeded', results[0]?.error);
  return results[0]?.output_path ?? '';
}

/** Verifies a folder at a path or an address. */
export async function verifyFolder(service: RunningService, path: string, params: object = {}): Promise<Verification> {
  const isRemote = /^\w+:\/\//.test(path);
  const input = isRemote ? { type: 'remote_folder_url', url: path } : { type: 'local_folder_path', path };
  const { results } = await service.runSync('/v2/sync/verify', { inputs: [input], params });
  assert.equal(results[0]?.status, 'succeeded', results[0]?.error);
  return results[0]?.verification as Verification;
}

/** Returns a copy of a publication, changed. */
export function copyOf(publication: string, change: (root: string) => void): string {
  const root = join(temporaryFolder(), 'copy');
  cpSync(publication, root, { recursive: true });
  change(root);
  return root;
}

export function textAt(root: string, path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function rewrite(root: string, path: string, edit: (text: string) => string): void {
  const text = textAt(root, path);
  assert.notEqual(edit(text), text);
  writeFileSync(join(root, path), edit(text));
}

export function told({ state, publication }: Verification): object {
  const { presentation, first = [] } = publication ?? {};
  return { state, presentation, first: first.map(({ kind, part, file }) => ({ kind, part, file })) };
}
