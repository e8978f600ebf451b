import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { PartsVerification } from '../checking/verify-parts.ts';
import { readListedPublication } from '../judging/listed-renditions.ts';
import { MAX_RENDITIONS } from '../playlists/limits.ts';
import { type JudgedPresentation, judgePresentation, manifestsByEntry } from './judge-presentation.ts';

/**
 * Compares the playlists of a source with the presentation that an earlier signing left in its init segments. Of its
 * fragments, the first of each rendition is read. Playlists that cannot be judged are not the signed ones.
 */
export async function judgeSourcePresentation(folder: SourceFolder, signal: AbortSignal): Promise<JudgedPresentation> {
  try {
    const publication = await readListedPublication(folder, null, signal);
    const verification = new PartsVerification(folder, signal, { maxManifests: MAX_RENDITIONS });
    const renditions = [];
    for (const listed of publication.renditions) {
      // Its first fragment says which of several maps of one init segment is its own.
      const fragments = listed.present.fragments.slice(0, 1);
      const read = listed.isInitMissing ? null : await verification.add({ init: listed.init, fragments });
      renditions.push({ listed, read });
    }
    const manifestsOf = manifestsByEntry(renditions, verification.manifests);
    return await judgePresentation({ ...publication, folder, areChosen: false, manifestsOf }, signal);
  } catch (error) {
    if (!(error instanceof AppError) || !/^(?:PLAYLIST|PUBLICATION)_/.test(error.reason)) throw error;
    const difference = { part: 'playlist', kind: 'unreadable', playlist: null } as const;
    return { state: 'changed', differences: [difference], absent: [], problems: [error.message] };
  }
}

/** Describes the first difference as the end of a sentence. */
export function describeChange({ differences: [first], problems: [problem] }: JudgedPresentation): string {
  if (first === undefined || first.playlist === null) return problem ?? 'its playlists are not the signed ones';
  if (first.part === 'files') return `text or pictures that "${first.playlist}" names are not the signed ones`;
  if (first.kind === 'added') return `"${first.playlist}" was not there`;
  return first.kind === 'missing' ? `"${first.playlist}" is missing` : `"${first.playlist}" is not the signed one`;
}
