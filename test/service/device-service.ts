import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JobResultResponse } from '#contract/job.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { type TestIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SOUND = fileURLToPath(new URL('../../samples/four-notes.mp3', import.meta.url));

/** The key of a credential: settings of a device, or the key's own file. */
export interface TestCredential {
  readonly identity: TestIdentity;
  readonly signer?: object;
}

export interface ConfiguredIdentity extends TestCredential {
  readonly publisher?: TestCredential;
}

/** The configuration of a service with several identities; the first one is the default. */
export class IdentityConfiguration {
  readonly folder = temporaryFolder();
  readonly file = join(this.folder, 'service.toml');

  constructor(identities: Readonly<Record<string, ConfiguredIdentity>>) {
    this.write(identities);
  }

  write(identities: Readonly<Record<string, ConfiguredIdentity>>): void {
    const sections = Object.entries(identities).flatMap(([name, { publisher, ...claim }]) => [
      this.#section(name, claim),
      ...(publisher === undefined ? [] : [this.#section(`${name}.publisher`, publisher)]),
    ]);
    const header = `[signing]\ndefault_identity = "${Object.keys(identities)[0]}"\n`;
    writeFileSync(this.file, header + sections.join(''));
  }

  /** Replaces the certificate of an identity, and the key where that is in a file. */
  renew(name: string, identity: TestIdentity): { readonly certificatePath: string; readonly privateKeyPath: string } {
    const own = join(this.folder, name);
    mkdirSync(own, { recursive: true });
    return writeIdentity(own, identity);
  }

  /** Starts the service; again with the same data where it was stopped. */
  start(settings: Readonly<Record<string, string>> = {}): Promise<RunningService> {
    return startService({
      folder: join(this.folder, 'service'),
      settings: { SERVICE_CONFIG_PATH: this.file, ...settings },
    });
  }

  #section(name: string, { identity, signer }: TestCredential): string {
    const { certificatePath, privateKeyPath } = this.renew(name, identity);
    const settings = signer ?? { type: 'pem', private_key_path: privateKeyPath };
    const pairs = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    return `[signing.identities.${name}]\ncertificate_path = "${certificatePath}"\nsigner = { ${pairs.join(', ')} }\n`;
  }
}

/** Submits a job of the same sound, several times where a count is given. */
export function submitSounds(service: RunningService, identity: string, count = 1): Promise<string> {
  return service.submit('/v2/c2pa/audio', {
    inputs: Array.from({ length: count }, () => ({ type: 'local_file_path', path: SOUND })),
    params: { identity },
    output: { type: 'local', prefix: crypto.randomUUID() },
  });
}

/** Returns the outputs of a job once all its inputs have succeeded. */
export async function outputsOf(service: RunningService, jobId: string): Promise<readonly Buffer[]> {
  const { status, results } = await service.waitFor(jobId);
  assert.equal(status, 'succeeded', JSON.stringify(results));
  return results.map(({ output_path: path }) => readFileSync(`${path}`));
}

/** Asserts that a job signs all its inputs with an identity, valid to both official readers. */
export async function assertSignedBy(service: RunningService, jobId: string, identity: TestIdentity): Promise<void> {
  const outputs = await outputsOf(service, jobId);
  for (const output of outputs) assertHolds(output, identity);
  await assertValid(outputs[0] as Buffer, 'audio/mpeg');
}

/** Asserts that the certificate of an identity stands in an output, with its subject. */
export function assertHolds(output: Uint8Array, { chain: [leaf = Buffer.alloc(0)] }: TestIdentity): void {
  assert(Buffer.from(output).includes(leaf), `the signature holds the certificate of ${new X509Certificate(leaf).subject}`);
}

/** Returns what a job says of the inputs that wait, once it does. */
export async function waitingFor(service: RunningService, jobId: string): Promise<JobResultResponse['waiting_for']> {
  let job: JobResultResponse | undefined;
  await until(async () => {
    job = await service.lookUp(jobId);
    return job.waiting_for !== undefined || job.results.length > 0;
  });
  return job?.waiting_for ?? assert.fail(JSON.stringify(job?.results));
}

/** Reloads the configuration, and returns the answer. */
export async function reload({ base }: RunningService): Promise<{ readonly status: number; readonly body: string }> {
  const answer = await fetch(`${base}/v2/reload`, { method: 'POST' });
  return { status: answer.status, body: await answer.text() };
}
