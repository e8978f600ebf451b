import assert from 'node:assert/strict';
import type { JobResultResponse } from '#contract/job.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { readFragmentStore } from '../../scripts/fragment-report.ts';
import { problemsOf } from '../support/judges/publication-judges.ts';
import type { ShownIngredient } from '../support/manifests/read-manifest.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { bytesOf, renditionsOf } from '../support/publications/signed-publication.ts';

/** The code of a binding that the bytes do not meet. */
export const MISMATCH = 'assertion.bmffHash.mismatch';

/** The code of a publication whose fragments match, and are missing or elsewhere. */
export const INCOMPLETE = 'com.attestream.publication.mismatch';

/** The output of a job of one input that succeeded. */
export function outputOf({ status, results: [result] }: JobResultResponse): string {
  assert.equal(status, 'succeeded', result?.error);
  return result?.output_path as string;
}

/** The origin that the manifest of an output states. */
export interface Told {
  readonly ingredients: readonly ShownIngredient[];
  readonly allActionsIncluded: boolean;
  /** The codes that the parent was found with, successes and failures. */
  readonly codes: readonly string[];
  readonly warnings: readonly string[];
}

/** Reads an output's manifest by its first fragment, which has to be valid to both readers. */
export async function told(job: JobResultResponse, patterns: PublicationPatterns): Promise<Told> {
  const files = filesAt(outputOf(job));
  const [rendition] = await renditionsOf(files, patterns);
  const [fragment] = rendition?.fragments ?? [];
  assert.ok(rendition !== undefined && fragment !== undefined);
  const [init, first] = [bytesOf(files, rendition.init), bytesOf(files, fragment)];
  assert.deepEqual(await problemsOf(init, first), []);
  const store = await readFragmentStore(init, first);
  assert.deepEqual(store.validation_status?.filter(({ code }) => code !== 'signingCredential.untrusted') ?? [], []);
  const active = store.manifests[store.active_manifest];
  const ingredients = (active?.ingredients ?? []) as unknown as ShownIngredient[];
  const actions = active?.assertions?.find(({ label }) => label.startsWith('c2pa.actions'))?.data;
  const results = ingredients.find(({ relationship }) => relationship === 'parentOf')?.validation_results;
  const { success = [], failure = [] } = (results?.activeManifest ?? {}) as Record<string, { code: string }[]>;
  return {
    ingredients,
    allActionsIncluded: (actions as { allActionsIncluded: boolean }).allActionsIncluded,
    codes: [...success, ...failure].map(({ code }) => code),
    warnings: job.results[0]?.warnings ?? [],
  };
}

/** The reasons of a job's warnings. */
export function reasonsOf({ results: [result] }: JobResultResponse): string[] {
  return (result?.warning_details ?? []).map(({ reason }) => reason);
}

/** The bytes with the last one changed. */
export function flipped(bytes: Uint8Array | undefined): Buffer {
  const changed = Buffer.from(bytes as Uint8Array);
  changed.writeUInt8((changed.at(-1) as number) ^ 1, changed.length - 1);
  return changed;
}

export function flippedAt(bytes: Uint8Array, position: number): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt8((changed[position] as number) ^ 1, position);
  return changed;
}
