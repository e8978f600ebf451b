import assert from 'node:assert/strict';
import type { Config } from '#config/config.ts';
import { configFileOf } from '#config/load-config.ts';
import { ownPlaces, recordsDirOf } from '#config/own-places.ts';
import { RELEASE } from '#config/release.ts';
import { folderBounds } from '#inputs/folder-bounds.ts';
import { createHttpClient } from '#inputs/http/http-client.ts';
import { httpFileOpener } from '#inputs/http/http-file.ts';
import { httpFolderOpener } from '#inputs/http/http-folder-opener.ts';
import { byScheme, InputResolver, localFileOpener, localFolderOpener } from '#inputs/input-resolver.ts';
import { localInputPolicy } from '#inputs/local/local-input-policy.ts';
import { s3FileOpener } from '#inputs/s3/s3-file.ts';
import { s3FolderOpener } from '#inputs/s3/s3-folder.ts';
import { type InputRunner, runInputWorker } from '#jobs/workers/input-worker.ts';
import type { OperationRooms } from '#operations/operation.ts';
import { operationNamed } from '#operations/registry.ts';
import { LocalSink } from '#outputs/local/local-sink.ts';
import { RoutedSink } from '#outputs/routed-sink.ts';
import { S3Sink } from '#outputs/s3/s3-sink.ts';
import { createManifestAuthor } from '#provenance/authoring/create-manifest-author.ts';
import type { Signer } from '#provenance/identity/signer.ts';
import { timeStampAuthorityOf } from '#provenance/identity/time-stamp-relay.ts';
import { hasLingeringNativeCall } from '#provenance/native-calls.ts';
import { createFragmentReader } from '#provenance/reading/fragment-reader.ts';
import { createOutputReader } from '#provenance/reading/output-reader.ts';
import { crawlPlaylists } from '#publications/reading/crawl-playlists.ts';

/** Opens the rooms that operations stand on, by the configuration. */
function openRooms(config: Config, signer: Signer): OperationRooms {
  const { verify_outputs: verify } = config.signing;
  return {
    inputs: openInputs(config),
    outputs: openOutputs(config),
    author: createManifestAuthor({
      signer,
      timeStampAuthority: timeStampAuthorityOf(config.signing),
      generator: { name: RELEASE.product, version: RELEASE.version },
    }),
    reader: verify ? createOutputReader() : null,
    fragments: createFragmentReader(),
    fragmentChecks: verify ? config.signing.verify_fragments : null,
  };
}

function openInputs(config: Config): InputResolver {
  const policy = localInputPolicy(config, configFile());
  const bounds = folderBounds(config);
  const { s3 } = config.input_resolvers;
  const http = createHttpClient(config);
  const httpFile = httpFileOpener(http);
  const httpFolder = httpFolderOpener(http, bounds, crawlPlaylists);
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
      local_folder_path: localFolderOpener(policy, bounds),
      remote_folder_url: byScheme({
        'https:': httpFolder,
        'http:': httpFolder,
        ...(s3 !== undefined && { 's3:': s3FolderOpener(s3, bounds) }),
      }),
    },
  );
}

function openOutputs(config: Config): RoutedSink {
  const {
    output_sinks: { local, s3 },
    jobs: { data_dir: dataDir },
    signing,
  } = config;
  return new RoutedSink(
    new LocalSink({
      baseDir: local.base_dir,
      dataDir,
      recordsDir: recordsDirOf(config),
      ownPlaces: ownPlaces(config, configFile()),
      naming: local.naming,
      readBack: signing.verify_outputs,
    }),
    s3 === undefined ? null : new S3Sink({ settings: s3, dataDir, readBack: signing.verify_outputs }),
  );
}

function configFile(): string {
  return configFileOf({ env: process.env, cwd: process.cwd() });
}

/** The composition root of an input worker: does inputs with the operations of the registry. */
export const inputRunner: InputRunner = {
  async start(config, worker) {
    assert(worker.signer !== null, 'workers that sign are started with a signer');
    const rooms = openRooms(config, worker.signer);
    return async (work, context) => {
      try {
        return await operationNamed(work.operation).run(work, context, rooms);
      } finally {
        if (hasLingeringNativeCall()) worker.taint();
      }
    };
  },
};

if (import.meta.main) runInputWorker(inputRunner);
