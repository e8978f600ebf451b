import assert from 'node:assert/strict';
import { hasAbandonedNativeCall } from '#concurrency/race-abort.ts';
import type { Config } from '#config/config.ts';
import { configFileOf } from '#config/config-file.ts';
import { protectedPaths, recordsDirOf } from '#config/protected-paths.ts';
import { RELEASE } from '#config/release.ts';
import { createInputResolver } from '#inputs/input-resolver.ts';
import type { OperationServices } from '#operations/operation.ts';
import { operationNamed } from '#operations/registry.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { OutputRouter } from '#outputs/output-sink.ts';
import { S3Sink } from '#outputs/s3-sink.ts';
import { createManifestAuthor } from '#provenance/manifest-author.ts';
import { checkOutput, createFragmentReader } from '#provenance/official-reader.ts';
import { type InputRunner, runInputWorker, type WorkerParts } from '#workers/input-worker.ts';

/** Creates the inputs, outputs and authors that operations use, by the configuration. */
function openModules(config: Config, { signers, trust, staples }: WorkerParts): OperationServices {
  const { verify_outputs: verify, tsa_timeout_ms: timeoutMs, tsa_required: isRequired } = config.signing;
  return {
    inputs: createInputResolver(config, configFileOf(), async (...folder) => {
      // Most workers read no folder over HTTP.
      const { crawlPlaylists } = await import('#publications/read-publication.ts');
      await crawlPlaylists(...folder);
    }),
    outputs: openOutputs(config),
    author: createManifestAuthor({
      identityOf: (name) => {
        assert(signers !== null, 'workers that sign are started with signers');
        const { tsaUrls: urls, ...keys } = signers.identityOf(name);
        return { ...keys, timeStamps: urls.length === 0 ? null : { urls, timeoutMs, isRequired } };
      },
      generator: { name: RELEASE.product, version: RELEASE.version },
      staples,
      trust,
    }),
    manifestDefaults: config.signing,
    outputChecker: verify ? checkOutput : null,
    trust,
    ...(config.trust.rubrics_dir !== undefined && { rubricsDir: config.trust.rubrics_dir }),
    fragments: createFragmentReader(),
    fragmentChecks: verify ? config.signing.verify_fragments : null,
  };
}

function openOutputs(config: Config): OutputRouter {
  const {
    output_sinks: { local, s3 },
    jobs: { data_dir: dataDir },
    signing,
  } = config;
  return new OutputRouter({
    local: new LocalSink({
      baseDir: local.base_dir,
      dataDir,
      recordsDir: recordsDirOf(config),
      protectedPaths: protectedPaths(config, configFileOf()),
      naming: local.naming,
      ...(local.existing && { existing: local.existing }),
      readBack: signing.verify_outputs,
    }),
    s3: s3 === undefined ? null : new S3Sink({ settings: s3, dataDir, readBack: signing.verify_outputs }),
  });
}

/** The composition root of an input worker: does inputs with the operations of the registry. */
export const inputRunner: InputRunner = {
  async start(config, worker) {
    const services = openModules(config, worker);
    return async (work, context) => {
      try {
        return await operationNamed(work.operation).run(work, context, services);
      } finally {
        if (hasAbandonedNativeCall()) worker.taint();
      }
    };
  },
};

if (import.meta.main) runInputWorker(inputRunner);
