import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { type TestIdentityWishes, testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { FORMAT, wav } from '../support/media/wav-bytes.ts';
import { childrenOf, commandOf, descendantsOf, processText } from '../support/process-tree.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FLOODING_SERVICE = fileURLToPath(new URL('./flooding-service.ts', import.meta.url));
const GREEDY_SERVICE = fileURLToPath(new URL('./greedy-service.ts', import.meta.url));
const PASSPHRASE = 'a passphrase that only the signer needs';
const INPUT_COUNT = 10;

async function place(wishes: TestIdentityWishes = {}) {
  const folder = temporaryFolder();
  const paths = writeIdentity(folder, await testIdentity(wishes), { passphrase: PASSPHRASE });
  chmodSync(paths.privateKeyPath, 0o644);
  const source = join(folder, 'sound.wav');
  writeFileSync(source, wav([FORMAT, { id: 'data', payload: Buffer.alloc(80_000, 7) }]));
  const settings = {
    SERVICE__SIGNING__CERTIFICATE_PATH: paths.certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: paths.privateKeyPath,
    SERVICE__SIGNING__PRIVATE_KEY_PASSPHRASE: PASSPHRASE,
    SERVICE__WORKER__SANDBOX: 'require',
  };
  return { folder, source, settings };
}

describe('a service whose key is in a process of its own', () => {
  test('kills a worker that floods the signer, and signs the inputs after it', async () => {
    const { folder, source, settings } = await place();
    const hostile = join(folder, 'flood.wav');
    copyFileSync(source, hostile);
    await using service = await startService({ folder, settings, program: FLOODING_SERVICE });
    const sign = (path: string, name: string) =>
      service.runSync('/v2/sync/c2pa/audio', {
        inputs: [{ type: 'local_file_path', path }],
        output: { type: 'local', name },
      });
    await sign(hostile, 'hostile');
    for (let count = 0; count < 8; count += 1) assert.equal((await sign(source, `good-${count}`)).status, 'succeeded');
    await until(() => readFileSync(service.logPath, 'utf8').includes('more requests than it may have pending'));
    assert.equal((await sign(source, 'last')).status, 'succeeded');
    assert(!readFileSync(service.logPath, 'utf8').includes('SIGNATURE_FAILED'));
  });

  test('kills a worker that asks for the key of another identity, and signs the inputs after it', async () => {
    const { folder, source } = await place();
    const identities = await Promise.all(
      ['default', 'sport'].map(async (name) => {
        const own = join(folder, name);
        mkdirSync(own);
        const { certificatePath, privateKeyPath } = writeIdentity(own, await testIdentity());
        const prefix = `SERVICE__SIGNING__IDENTITIES__${name.toUpperCase()}__`;
        return {
          [`${prefix}CERTIFICATE_PATH`]: certificatePath,
          [`${prefix}SIGNER__TYPE`]: 'pem',
          [`${prefix}SIGNER__PRIVATE_KEY_PATH`]: privateKeyPath,
        };
      }),
    );
    const hostile = join(folder, 'greedy.wav');
    copyFileSync(source, hostile);
    const settings = Object.assign({ SERVICE__SIGNING__DEFAULT_IDENTITY: 'default' }, ...identities);
    await using service = await startService({ folder, settings, program: GREEDY_SERVICE });
    const sign = (path: string, name: string) =>
      service.runSync('/v2/sync/c2pa/audio', {
        inputs: [{ type: 'local_file_path', path }],
        output: { type: 'local', name },
      });
    assert.equal((await sign(hostile, 'hostile')).status, 'failed');
    assert.match(readFileSync(service.logPath, 'utf8'), /because it asked for a key that its input may not use/);
    assert.equal((await sign(source, 'good')).status, 'succeeded');
  });

  test('loses no input when that process is killed while they are signed', async () => {
    const { folder, source, settings } = await place();
    await using service = await startService({ folder, settings });
    const inputs = Array.from({ length: INPUT_COUNT }, (_, index) => {
      const path = join(folder, `sound-${index}.wav`);
      copyFileSync(source, path);
      return { type: 'local_file_path', path };
    });
    for (const round of [1, 2, 3]) {
      const signer = childrenOf(service.pid).find((pid) => commandOf(pid).includes('run-signer'));
      assert(signer !== undefined);
      process.kill(signer, 'SIGSTOP');
      const output = { type: 'local', prefix: `round-${round}` };
      const jobId = await service.submit('/v2/c2pa/audio', { inputs, output });
      // An input that is copied is signed next.
      await until(async () => ((await service.lookUp(jobId)).progress?.bytes_done ?? 0) > 0);
      process.kill(signer, 'SIGKILL');
      const job = await service.waitFor(jobId);
      assert.equal(job.status, 'succeeded', JSON.stringify(job.results.find(({ status }) => status === 'failed')));
      await assertValid(readFileSync(job.results[INPUT_COUNT - 1]?.output_path ?? ''), 'audio/wav');
    }
  });

  test('gives no other process a secret of its environment, and warns of a key that everybody can read', async () => {
    const { folder, source, settings } = await place();
    await using service = await startService({ folder, settings });
    await service.runSync('/v2/sync/c2pa/audio', { inputs: [{ type: 'local_file_path', path: source }] });
    const processes = descendantsOf(service.pid);
    assert(processes.some((pid) => commandOf(pid).includes('worker')));
    for (const pid of processes) assert(!processText(pid, 'environ').includes('SERVICE__'), commandOf(pid));
    const lines = readFileSync(service.logPath, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert(lines.some(({ mode, file }) => mode === '0644' && file === settings.SERVICE__SIGNING__PRIVATE_KEY_PATH));
    assert(lines.some(({ active }) => active?.includes('sandbox')));
  });

  test('does not start with a certificate that one of the official readers calls invalid', async () => {
    const { folder, settings } = await place({
      leaf: { extendedKeyUsages: [EXTENDED_KEY_USAGE.c2paClaimSigning] },
    });
    await assert.rejects(startService({ folder, settings }));
    assert.match(readFileSync(join(folder, 'service.log'), 'utf8'), /"reason":"IDENTITY_INVALID"/);
  });
});
