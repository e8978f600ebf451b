import assert from 'node:assert/strict';
import type { Config } from '#config/config.ts';
import { createHttpClient } from './http/http-client.ts';
import { httpFileOpener } from './http/http-file.ts';
import { httpFolderOpener, type PlaylistCrawler } from './http/open-http-folder.ts';
import { InputResolver } from './input-resolver.ts';
import { localFileOpener, localInputPolicy } from './local/local-file.ts';
import { localFolderOpener } from './local/local-folder.ts';
import { s3FileOpener, s3FolderOpener } from './s3/s3-sources.ts';

/**
 * Creates the resolver of all inputs that a configuration allows. `configFile` is protected from being read; `crawl` finds
 * the files that playlists refer to in folders over HTTP.
 */
export function createInputResolver(config: Config, configFile: string, crawl: PlaylistCrawler): InputResolver {
  const { max_files: maxFiles, max_bytes: maxBytes, max_depth: maxDepth, s3 } = config.input_resolvers;
  const limits = { maxFiles, maxBytes, maxDepth };
  const policy = localInputPolicy(config, configFile);
  const http = createHttpClient(config);
  const httpFile = httpFileOpener(http);
  const httpFolder = httpFolderOpener(http, limits, crawl);
  return new InputResolver(
    {
      local_file_path: localFileOpener(policy),
      remote_file_url: byScheme({
        'https:': httpFile,
        'http:': httpFile,
        ...(s3 !== undefined && { 's3:': s3FileOpener(s3) }),
      }),
    },
    {
      local_folder_path: localFolderOpener(policy, limits),
      remote_folder_url: byScheme({
        'https:': httpFolder,
        'http:': httpFolder,
        ...(s3 !== undefined && { 's3:': s3FolderOpener(s3, limits) }),
      }),
    },
  );
}

/** The schemes of remote inputs, as `URL.protocol` spells them. */
type Scheme = 'https:' | 'http:' | 's3:';

/** Chooses an opener by the scheme of the address. Validation refuses schemes without one. */
function byScheme<Input extends { readonly url: string }, Context, Opened>(
  openers: Readonly<Partial<Record<Scheme, (input: Input, inputIndex: number, context: Context) => Promise<Opened>>>>,
): (input: Input, inputIndex: number, context: Context) => Promise<Opened> {
  return async (input, inputIndex, context) => {
    const { protocol } = new URL(input.url);
    const opener = openers[protocol as Scheme];
    assert(opener !== undefined, `requests with addresses of the scheme ${protocol} are refused at admission`);
    return await opener(input, inputIndex, context);
  };
}
