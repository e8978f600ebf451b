import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { matchingPaths } from '#publications/path-patterns.ts';

/**
 * Returns a folder with only those files that the request includes. Throws `PATTERN_NO_MATCH` where a pattern matches
 * none, and `PATTERN_INVALID`.
 */
export function includedFiles(folder: SourceFolder, { include }: Pick<PackageParams, 'include'>): SourceFolder {
  if (include === undefined) return folder;
  const paths = folder.files.map(({ path }) => path);
  const included = new Set(
    include.flatMap((pattern, index) => [...matchingPaths(paths, pattern, `params.include[${index}]`)]),
  );
  const { name, files, baseUrl } = folder;
  return {
    name,
    files: files.filter(({ path }) => included.has(path)),
    ...(baseUrl !== undefined && { baseUrl }),
    open: (path, signal) => folder.open(path, signal),
  };
}
