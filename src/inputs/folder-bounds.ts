import type { Config } from '#config/config.ts';

/** How large a folder input may be, whatever it is read from. */
export interface FolderBounds {
  readonly maxFiles: number;
  /** All files together. */
  readonly maxBytes: number;
  /** Folders inside one another, the input folder itself not counted. */
  readonly maxDepth: number;
}

/** The bounds that a configuration sets. */
export function folderBounds({ input_resolvers: resolvers }: Config): FolderBounds {
  return { maxFiles: resolvers.max_files, maxBytes: resolvers.max_bytes, maxDepth: resolvers.max_depth };
}
