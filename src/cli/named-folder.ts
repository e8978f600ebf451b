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

/** Returns a result with the path and the name of the folder that was given in place of the link's. */
export function withoutLink(entry: JobResultEntry, input: ApiInputRef, path: string): JobResultEntry {
  if (!('path' in input)) return entry;
  const pathPair = [input.path, path].map(inJson);
  // A name is a whole value, or stands in quotes in a message.
  const namePair = [input.path, path].map((each) => JSON.stringify(basename(each)));
  const pairs = [pathPair, namePair, namePair.map(inJson)];
  const text = pairs.reduce(
    (json, [link = '', named = '']) => json.replaceAll(link, () => named),
    JSON.stringify(entry),
  );
  return JSON.parse(text);
}

/** Returns text as it stands within a string of JSON. */
function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
