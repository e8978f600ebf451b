import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { outputSizeBytes, type SplicePlan } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { openS3File } from '#inputs/s3/s3-sources.ts';
import { parseS3Url } from '#s3/s3-address.ts';
import type { S3Bounds } from '#s3/s3-connection.ts';
import { expireSockets } from '../support/servers/expire-sockets.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';
import { type Files, fill, NEW, OLD } from './publication-files.ts';
import { key, openS3Place, type S3Place } from './s3-place.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
/** More parts than are sent at once, and a rest. */
const SOURCE = randomBytes(34 * MIB + 5);
const MANIFEST = Buffer.alloc(900, 7);

/** As a film is signed: something new at the start, a hole in it, and then the film. */
const PLAN: SplicePlan = {
  splices: [
    { kind: 'insert', bytes: Buffer.alloc(100, 1), into: 'none' },
    { kind: 'hole', length: MANIFEST.length },
    { kind: 'copy', offset: 40, length: SOURCE.length - 40, into: 'flat' },
  ],
  hashing: { algorithm: 'sha256' },
};
const OUTPUT = Buffer.concat([Buffer.alloc(100, 1), MANIFEST, SOURCE.subarray(40)]);
/** Parts that are sent have 8 MiB. */
const SENT_PARTS = Math.ceil(OUTPUT.length / (8 * MIB));

/** Faults that a part meets the first time that it is sent or copied. */
const FAULTS_OF_ANSWERS: readonly Fault[] = [{ status: 503, code: 'SlowDown' }, { cutAfterBytes: 0 }];
const CUT_WITHIN_PART: Fault = { cutAfterSentBytes: MIB };

/** Pauses far shorter than those of the service, and an idle time-out that passes only where a test says so. */
const BOUNDS: S3Bounds = { firstPauseMs: 10, idleTimeoutMs: 600_000 };

let s3: TestS3;
let proxy: FaultyProxy;
let bucket: string;

before(async () => {
  s3 = await openTestS3();
  bucket = await s3.createBucket();
  proxy = await startFaultyProxy(s3.place.endpoint);
  await s3.client.putObject({ Bucket: bucket, Key: 'source', Body: SOURCE });
});
beforeEach(() => {
  proxy.fault = () => null;
});
after(async () => {
  await proxy.close();
  await s3.close();
});

describe('a film that goes from a bucket to a bucket of the same server', () => {
  test('is copied there, but for what is new', async () => {
    let sentBytes = 0;
    let copies = 0;
    proxy.fault = (request) => {
      if (request.method === 'PUT') sentBytes += Number(request.headers['content-length'] ?? 0);
      if (isCopy(request)) copies += 1;
      return null;
    };
    await withPlace(async (place) => {
      const sink = await stage(place);
      await sink.commit(never);
      assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
      assert.deepEqual(await place.leftovers(), []);
    });
    assert.ok(copies >= 2 && sentBytes < 6 * MIB, `${copies} copies, ${sentBytes} bytes sent`);
  });

  test('is sent from here where the server does not copy', async () => {
    proxy.fault = (request) => (isCopy(request) ? { status: 501, code: 'NotImplemented' } : null);
    await withPlace(async (place) => {
      const sink = await stage(place);
      await sink.commit(never);
      assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
    });
  });

  test('is refused where it changes while it is copied, and leaves nothing', async () => {
    let replaced: Promise<unknown> | null = null;
    proxy.fault = (request) => {
      if (!isCopy(request)) return null;
      if (replaced !== null) return { status: 412, code: 'PreconditionFailed' };
      replaced = Promise.resolve();
      return null;
    };
    await leavesNothing('SOURCE_CHANGED');
  });
});

describe('an upload that meets faults', () => {
  test('is gone on with after the server asked to slow down, and after connections that broke off at either end', async () => {
    for (const apart of [false, true]) {
      const tried = new Set<string>();
      proxy.fault = (request) => {
        const part = /partNumber=\d+/.exec(request.url ?? '')?.[0];
        if (part === undefined || tried.has(part)) return null;
        tried.add(part);
        const faults = isCopy(request) ? FAULTS_OF_ANSWERS : [...FAULTS_OF_ANSWERS, CUT_WITHIN_PART];
        return faults[tried.size % faults.length] ?? null;
      };
      await withPlace(async (place) => {
        const sink = await stage(place, { apart });
        await sink.commit(never);
        assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
        assert.deepEqual(await place.leftovers(), []);
      });
    }
  });

  test('is completed again where the answer began well and ended in an error', async () => {
    let tries = 0;
    proxy.fault = (request) => {
      if (!isCompletion(request)) return null;
      tries += 1;
      return tries === 1 ? { status: 200, code: 'InternalError' } : null;
    };
    await withPlace(async (place) => {
      const sink = await stage(place);
      await sink.commit(never);
      assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
    });
    assert.equal(tries, 2);
  });

  test('leaves nothing where every answer begins well and ends in an error', async () => {
    proxy.fault = (request) => (isCompletion(request) ? { status: 200, code: 'InternalError' } : null);
    await leavesNothing('S3_BUSY');
  });

  test('is complete where it is, also when no answer says so', async () => {
    let tries = 0;
    proxy.fault = (request) => {
      if (!isCompletion(request)) return null;
      tries += 1;
      // Some servers answer the repeated request as the first one, others know no such upload any more.
      return tries === 1 ? { cutAfterBytes: 0 } : { status: 404, code: 'NoSuchUpload' };
    };
    await withPlace(async (place) => {
      const sink = await stage(place);
      await sink.commit(never);
      assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
      assert.deepEqual(await place.leftovers(), []);
    });
    assert.equal(tries, 2);
  });

  test('leaves nothing where the right to write is refused, at any step', async () => {
    const steps = [isCreation, (request: IncomingMessage) => /partNumber=2/.test(request.url ?? ''), isCompletion];
    for (const isRefused of steps) {
      proxy.fault = (request) => (isRefused(request) ? { status: 403, code: 'AccessDenied' } : null);
      await leavesNothing('S3_ACCESS_DENIED', { apart: true });
    }
  });

  test('leaves nothing where the server fails forever', async () => {
    proxy.fault = (request) => (isCompletion(request) ? { status: 500, code: 'InternalError' } : null);
    await leavesNothing('S3_BUSY');
  });

  test('outlasts a storm of refusals that meets every request', async () => {
    const refusals = new Map<string, number>();
    proxy.fault = (request) => {
      const name = `${request.method} ${request.url}`;
      const made = refusals.get(name) ?? 0;
      refusals.set(name, made + 1);
      return made < 6 ? { status: 503, code: 'SlowDown' } : null;
    };
    await withPlace(async (place) => {
      const sink = await stage(place, { apart: true });
      await sink.commit(never);
      assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
      assert.deepEqual(await place.leftovers(), []);
    });
    assert.ok(refusals.size >= SENT_PARTS + 2, `${refusals.size} requests`);
  });

  test('leaves nothing where the storm never ends', async () => {
    proxy.fault = (request) => (request.method === 'PUT' ? { status: 503, code: 'SlowDown' } : null);
    await leavesNothing('S3_BUSY', { apart: true });
  });

  test('is begun and completed again where another request changes the same thing just then', async () => {
    for (const isRefused of [isCreation, isCompletion]) {
      let refusals = 0;
      proxy.fault = (request) => {
        if (!isRefused(request) || refusals === 3) return null;
        refusals += 1;
        return { status: 409, code: 'OperationAborted' };
      };
      await withPlace(async (place) => {
        const sink = await stage(place, { apart: true });
        await sink.commit(never);
        assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
      });
      assert.equal(refusals, 3);
      proxy.fault = (request) => (isRefused(request) ? { status: 409, code: 'OperationAborted' } : null);
      await leavesNothing('S3_CONFLICT', { apart: true });
    }
  });

  test('is gone on with where the server takes a request and never answers it', async () => {
    const silent = new Set<string>();
    proxy.fault = (request) => {
      const step = /partNumber=2|\?uploads|\?uploadId/.exec(request.url ?? '')?.[0];
      if (step === undefined || silent.has(step)) return null;
      silent.add(step);
      return silence(request);
    };
    await withPlace(async (place) => {
      const sink = await stage(place, { apart: true });
      await sink.commit(never);
      assert.ok((await place.objectAt(sink.destination))?.equals(OUTPUT));
    });
    assert.equal(silent.size, 3);
  });

  test('leaves nothing where the server never answers', async () => {
    let tries = 0;
    proxy.fault = (request) => {
      if (!/partNumber=2/.test(request.url ?? '')) return null;
      tries += 1;
      return silence(request);
    };
    await leavesNothing('S3_UNREACHABLE', { apart: true });
    assert.ok(tries > 1 && tries < 10, `${tries} tries`);
  });

  test('stays noted where it cannot be ended', async () => {
    proxy.fault = (request) =>
      isCompletion(request) || request.method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : null;
    await withPlace(async (place) => {
      const sink = await stage(place);
      await assert.rejects(sink.commit(never));
      await sink.discard();
      assert.equal((await place.leftovers()).length, 2, 'the upload and its note');
    });
  });
});

describe('a file of one request', () => {
  test('is delivered where its answer is lost, again and again', async () => {
    proxy.fault = (request) => (request.method === 'PUT' ? { unanswered: true } : null);
    await withPlace(async (place) => {
      const sink = await stageSmall(place);
      await sink.commit(never);
      assert.equal(String(await place.objectAt(sink.destination)), 'small');
      assert.deepEqual(await place.leftovers(), []);
    });
  });

  test('is not delivered where it is not sent, whatever stands there already', async () => {
    await withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'small.mp4');
      await s3.client.putObject({ Bucket: bucket, Key: parseS3Url(destination).key, Body: 'small' });
      proxy.fault = (request) => (request.method === 'PUT' ? { status: 403, code: 'AccessDenied' } : null);
      const sink = await stageSmall(place);
      await assert.rejects(sink.commit(never), { reason: 'S3_ACCESS_DENIED' });
      await sink.discard();
      assert.deepEqual(await place.leftovers(), []);
    });
  });
});

describe('a publication whose commit fails in the middle', () => {
  test('leaves no file that the next publication does not remove', async () => {
    await withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'talk');
      let attempt = 0;
      const commit = async (files: Files): Promise<void> => {
        attempt += 1;
        const staged = await place.sink.stageFolder(destination, 100, { ...key, attempt }, never, place.scratch);
        const sink = await fill(staged, files);
        await sink.commit(never).finally(() => sink.discard());
      };
      await commit(OLD);
      proxy.fault = ({ method, url = '' }) =>
        method === 'PUT' && url.includes('master.m3u8') ? { status: 403, code: 'AccessDenied' } : null;
      await assert.rejects(commit({ 'master.m3u8': 'half', 'half/1.m4s': 'half' }), { reason: 'S3_ACCESS_DENIED' });
      proxy.fault = () => null;
      await commit(NEW);
      assert.deepEqual(await place.objectsIn(destination), NEW);
    });
  });

  test('is taken back where it replaces nothing, whatever others put beside it', async () => {
    await withPlace(async (place) => {
      const destination = place.sink.destinationOf(place.output, 'talk');
      const foreign = `${parseS3Url(destination).key}/notes.txt`;
      await s3.client.putObject({ Bucket: bucket, Key: foreign, Body: 'theirs' });
      const sink = await fill(await place.sink.stageFolder(destination, 100, key, never, place.scratch), NEW);
      proxy.fault = ({ method, url = '' }) =>
        method === 'PUT' && url.includes('master.m3u8') ? { status: 403, code: 'AccessDenied' } : null;
      await assert.rejects(sink.commit(never), { reason: 'S3_ACCESS_DENIED' });
      await sink.discard();
      assert.deepEqual(await place.objectsIn(destination), { 'notes.txt': 'theirs' });
      assert.deepEqual(await place.leftovers(), []);
    });
  });

  test('is not begun where it cannot be recorded', async () => {
    await withPlace(async (place) => {
      await mkdir(place.dataDir, { recursive: true });
      await writeFile(join(place.dataDir, 'deliveries-s3'), 'no folder');
      const destination = place.sink.destinationOf(place.output, 'talk');
      const sink = await fill(await place.sink.stageFolder(destination, 100, key, never, place.scratch), NEW);
      await assert.rejects(sink.commit(never), { reason: 'OUTPUT_FAILED' });
      await sink.discard();
      assert.equal(await place.objectsIn(destination), null);
      assert.deepEqual(await place.leftovers(), []);
    });
  });
});

async function stageSmall(place: S3Place): Promise<ByteSink> {
  const destination = place.sink.destinationOf(place.output, 'small.mp4');
  const sink = await place.sink.stageFile(destination, 5, key, never, place.scratch);
  await sink.write(Buffer.from('small'), 0, never);
  await sink.seal(never);
  return sink;
}

/** Leaves a request without an answer until the idle time-out passes, which it does at once. */
function silence({ socket }: IncomingMessage): Fault {
  void expireSockets({ ...s3.settings, endpoint_url: proxy.endpoint, bounds: BOUNDS }, socket.remotePort);
  return { silent: true };
}

function isCopy(request: IncomingMessage): boolean {
  return request.headers['x-amz-copy-source'] !== undefined;
}

function isCreation(request: IncomingMessage): boolean {
  return request.method === 'POST' && /\?uploads/.test(request.url ?? '');
}

function isCompletion(request: IncomingMessage): boolean {
  return request.method === 'POST' && /\?uploadId=/.test(request.url ?? '');
}

async function withPlace(use: (place: S3Place) => Promise<void>): Promise<void> {
  const place = await openS3Place(s3, bucket, { readBack: false, endpoint_url: proxy.endpoint, bounds: BOUNDS });
  try {
    await use(place);
  } finally {
    await place.cleanUp();
  }
}

/** Writes the film to a place and seals it. With `apart` it is read past the proxy, and so not copied by the server. */
async function stage(place: S3Place, { apart = false } = {}): Promise<ByteSink> {
  const settings = { ...s3.settings, ...(!apart && { endpoint_url: proxy.endpoint, bounds: BOUNDS }) };
  const source = await openS3File(`s3://${bucket}/source`, 'source', settings, never);
  const destination = place.sink.destinationOf(place.output, 'film.mp4');
  const sink = await place.sink.stageFile(destination, outputSizeBytes(PLAN), key, never, place.scratch);
  try {
    await executePlan(PLAN, source, sink, { signal: never });
    await fillHole(PLAN, sink, MANIFEST, never);
    await sink.seal(never);
    return sink;
  } catch (error) {
    await sink.discard();
    throw error;
  } finally {
    await source.close();
  }
}

async function leavesNothing(reason: Reason, { apart = false } = {}): Promise<void> {
  await withPlace(async (place) => {
    const destination = place.sink.destinationOf(place.output, 'film.mp4');
    await assert.rejects(
      async () => {
        const sink = await stage(place, { apart });
        await sink.commit(never).finally(() => sink.discard());
      },
      (error) => {
        assert.ok(error instanceof AppError, String(error));
        assert.equal(error.reason, reason);
        return true;
      },
    );
    assert.equal(await place.objectAt(destination), null);
    assert.deepEqual(await place.leftovers(), []);
  });
}
