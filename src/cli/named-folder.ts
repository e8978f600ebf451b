import { mkdirSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { JobResultEntry } from '#contract/job.ts';
import type { ApiInputRef } from '#contract/request.ts';

/** Returns a reference to the same folder under another name, after which its output is named: that of a link in `runFolder`. */
export function linkTo(input: ApiInputRef, name: string, runFolder: string, index: number): ApiInputRef {
  if (!('path' in input)) return input;
  const folder = join(runFolder, 'inputs', String(index));
  mkdirSync(folder, { recursive: true });
  const path = join(folder, name);
  symlinkSync(input.path, path);
  return { ...input, path };
}

/** Returns a result with the path that was named in place of the link's. */
export function withoutLink(entry: JobResultEntry, input: ApiInputRef, path: string): JobResultEntry {
  if (!('path' in input)) return entry;
  const [link, named] = [input.path, path].map((each) => JSON.stringify(each).slice(1, -1));
  return { ...JSON.parse(JSON.stringify(entry).replaceAll(link ?? '', named ?? '')), input_name: basename(path) };
}
