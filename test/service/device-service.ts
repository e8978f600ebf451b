import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JobResultResponse } from '#contract/job.ts';
import type { Readiness } from '#contract/service.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { type TestIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SOUNDS = temporaryFolder();

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
  readonly #files = new Map<TestIdentity, ReturnType<typeof writeIdentity>>();

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

  /** Puts a certificate in the place of another one. */
  renew(old: TestIdentity, next: TestIdentity): void {
    writeIdentity(dirname(this.#filesOf(old).certificatePath), next);
  }

  /** Starts the service; again with the same data where it was stopped. */
  start(settings: Readonly<Record<string, string>> = {}): Promise<RunningService> {
    return startService({
      folder: join(this.folder, 'service'),
      settings: { SERVICE_CONFIG_PATH: this.file, ...settings },
    });
  }

  #section(name: string, { identity, signer }: TestCredential): string {
    const { certificatePath, privateKeyPath } = this.#filesOf(identity);
    const settings = signer ?? { type: 'pem', private_key_path: privateKeyPath };
    const pairs = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    return `[signing.identities.${name}]\ncertificate_path = "${certificatePath}"\nsigner = { ${pairs.join(', ')} }\n`;
  }

  /** Writes an identity once. */
  #filesOf(identity: TestIdentity): ReturnType<typeof writeIdentity> {
    const known = this.#files.get(identity);
    if (known !== undefined) return known;
    const own = join(this.folder, `credential-${this.#files.size}`);
    mkdirSync(own);
    const files = writeIdentity(own, identity);
    this.#files.set(identity, files);
    return files;
  }
}

/** Submits a job of one sound, or of more. */
export function submitSounds(service: RunningService, identity: string, count = 1): Promise<string> {
  const inputs = Array.from({ length: count }, (_, index) => {
    const path = join(SOUNDS, `${index}.wav`);
    if (!existsSync(path)) writeFileSync(path, smallWav());
    return { type: 'local_file_path', path };
  });
  return service.submit('/v2/c2pa/audio', {
    inputs,
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
  await assertValid(outputs[0] as Buffer, 'audio/wav');
}

/** Asserts that the certificate of one of some identities stands in an output. */
export function assertHolds(output: Uint8Array, ...identities: readonly TestIdentity[]): void {
  const bytes = Buffer.from(output);
  assert(identities.some(({ chain: [leaf] }) => bytes.includes(leaf ?? assert.fail('a chain has a leaf'))));
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

/** Returns the dependencies that are away, as the service says. */
export async function dependenciesAway({ base }: RunningService): Promise<Readiness['dependencies']> {
  return ((await (await fetch(`${base}/v2/health/ready`)).json()) as Readiness).dependencies;
}

/** Reloads the configuration, and returns the answer. */
export async function reload({ base }: RunningService): Promise<{ readonly status: number; readonly body: string }> {
  const answer = await fetch(`${base}/v2/reload`, { method: 'POST' });
  return { status: answer.status, body: await answer.text() };
}
