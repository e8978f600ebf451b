import assert from 'node:assert/strict';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { describePart } from '#publications/media-part.ts';
import type { Publication, PublicationPatterns } from '#publications/publication.ts';
import { readPublication } from '#publications/read-publication.ts';
import { folderOf } from '../support/publications/make-folder.ts';

export const PATTERNS: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: '*init*', frag: '*.{m4s,cmfv,cmfa}' };
const { signal } = new AbortController();

export type Files = Record<string, string | Uint8Array>;

export function read(
  files: Files,
  patterns: Partial<PublicationPatterns> = {},
  baseUrl?: string,
): Promise<Publication> {
  return readPublication(folderOf(files, baseUrl), { ...PATTERNS, ...patterns }, signal);
}

/** Renditions as `init: fragment fragment …`, one string each. */
export async function renditionsOf(
  files: Files,
  patterns: Partial<PublicationPatterns> = {},
  baseUrl?: string,
): Promise<string[]> {
  const { renditions } = await read(files, patterns, baseUrl);
  return renditions.map(({ init, fragments }) => `${describePart(init)}: ${fragments.map(describePart).join(' ')}`);
}

export async function assertRefused(
  reason: Reason,
  files: Files,
  patterns: Partial<PublicationPatterns> = {},
  line?: number,
): Promise<void> {
  await assert.rejects(read(files, patterns), (error) => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.reason, reason, error.message);
    if (line !== undefined) assert.equal((error.details as { line?: number }).line, line);
    return true;
  });
}

export function hls(...lines: string[]): string {
  return ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:4', ...lines, '#EXT-X-ENDLIST', ''].join('\n');
}

export function segments(...uris: string[]): string[] {
  return uris.flatMap((uri) => ['#EXTINF:4.0,', uri]);
}

export function empty(...paths: string[]): Files {
  return Object.fromEntries(paths.map((path) => [path, '']));
}

export function mpd(body: string, attributes = 'type="static" mediaPresentationDuration="PT10S"'): string {
  return `<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" ${attributes}>\n${body}\n</MPD>\n`;
}

export function period(template: string, representation = '<Representation id="v" bandwidth="1000"/>'): string {
  return `<Period><AdaptationSet mimeType="video/mp4">${template}${representation}</AdaptationSet></Period>`;
}
