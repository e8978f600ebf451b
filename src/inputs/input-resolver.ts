import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { Config } from '#config/config.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { createHttpClient } from './http/http-client.ts';
import { httpFileOpener } from './http/http-file.ts';
import { httpFolderOpener, type PlaylistCrawler } from './http/open-http-folder.ts';
import type { FileOpener, FolderOpener, FolderOpeningContext, InputType, OpeningContext } from './input-opener.ts';
import { localFileOpener, localInputPolicy } from './local/local-file.ts';
import { localFolderOpener } from './local/local-folder.ts';
import { s3FileOpener, s3FolderOpener } from './s3/s3-sources.ts';

/** The openers of a service by the input type they serve. A type without one is refused when a request is validated. */
type FileOpeners = { readonly [Type in InputType]?: FileOpener<Type> };
type FolderOpeners = { readonly [Type in InputType]?: FolderOpener<Type> };

/** Opens what requests name, each type of reference in its own way. */
export class InputResolver {
  readonly #files: FileOpeners;
  readonly #folders: FolderOpeners;

  constructor(files: FileOpeners, folders: FolderOpeners = {}) {
    this.#files = files;
    this.#folders = folders;
  }

  /** Opens a single file. The caller closes it. */
  async openFile(input: ApiInputRef, inputIndex: number, context: OpeningContext): Promise<ByteSource> {
    const opener = this.#files[input.type] as FileOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    const source = await opener(input, inputIndex, context);
    context.opened?.({ bytes: source.sizeBytes, files: 0 });
    return source;
  }

  /** Opens a folder with everything in it. The caller closes it. */
  async openFolder(input: ApiInputRef, inputIndex: number, context: FolderOpeningContext): Promise<SourceFolder> {
    const opener = this.#folders[input.type] as FolderOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    const folder = await opener(input, inputIndex, context);
    const { files } = folder;
    context.opened?.({ bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0), files: files.length });
    return folder;
  }
}

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
