// A real S3 server on loopback, for tests and benchmarks: Ceph's gateway with a monitor and an object store that keeps
// everything in memory. It is ready in a second or two and ends with the process that started it.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CEPH_LIBRARIES, CEPH_ROOT } from './ceph-programs.ts';
import { cephSettings } from './ceph-settings.ts';
import { type OwnAddress, ownAddress } from './own-address.ts';

/** One step of the start may take so long, and the gateway so long to answer. */
const STEP_TIMEOUT_MS = 600_000;
const POLL_INTERVAL_MS = 25;

/** The address and the credentials of an S3 server. */
export interface S3Place {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface S3Server extends S3Place {
  /** Ends the server and removes what it held. Safe to call again. */
  stop(): Promise<void>;
}

/** Starts a server with nothing in it. */
export async function startS3Server(): Promise<S3Server> {
  if (!existsSync(CEPH_ROOT)) {
    throw new Error('The S3 server of the tests is not installed. Run: npm run setup -- --tests');
  }
  const cluster = new CephCluster();
  try {
    return await cluster.start();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

class CephCluster {
  readonly #folder = mkdtempSync(join(tmpdir(), 's3-'));
  readonly #servers: ChildProcess[] = [];

  async start(): Promise<S3Server> {
    const [monitor, gateway] = [ownAddress(), ownAddress()];
    const clusterId = randomUUID();
    for (const name of ['mon', 'osd', 'rgw']) mkdirSync(join(this.#folder, name));
    writeFileSync(join(this.#folder, 'keyring'), '');
    writeFileSync(join(this.#folder, 'ceph.conf'), cephSettings({ folder: this.#folder, clusterId, monitor, gateway }));
    await this.#startMonitor(clusterId, monitor);
    await this.#startStore();
    return await this.#startGateway(gateway);
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) server.kill('SIGKILL');
    await Promise.all(this.#servers.map(ended));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #startMonitor(clusterId: string, { host, port }: OwnAddress): Promise<void> {
    const map = join(this.#folder, 'monmap');
    await this.#run('monmaptool', [
      '--create',
      '--clobber',
      '--fsid',
      clusterId,
      '--addv',
      'a',
      `[v2:${host}:${port}/0]`,
      map,
    ]);
    await this.#run('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', map]);
    this.#serve('ceph-mon', ['-i', 'a', '-f']);
  }

  async #startStore(): Promise<void> {
    const id = randomUUID();
    await this.#run('ceph', ['osd', 'new', id]);
    await this.#run('ceph-osd', ['-i', '0', '--mkfs', '--osd-uuid', id]);
    this.#serve('ceph-osd', ['-i', '0', '-f']);
  }

  async #startGateway({ host, port }: OwnAddress): Promise<S3Server> {
    const place = {
      endpoint: `http://${host}:${port}`,
      region: 'us-east-1',
      accessKeyId: 'testkey',
      secretAccessKey: 'testsecret12345',
    };
    const { accessKeyId, secretAccessKey } = place;
    const user = ['user', 'create', '--uid=test', '--display-name=test'];
    const keys = [`--access-key=${accessKeyId}`, `--secret=${secretAccessKey}`];
    await this.#run('radosgw-admin', ['-n', 'client.rgw', ...user, ...keys]);
    this.#serve('radosgw', ['-n', 'client.rgw', '-f']);
    await this.#untilAnswered(place.endpoint);
    return { ...place, stop: () => this.stop() };
  }

  /** Runs a program to its end. Kills it when a server exits: it would wait for its answer. */
  async #run(program: string, parameters: readonly string[]): Promise<void> {
    const child = this.#spawn(program, parameters);
    const kill = () => child.kill('SIGKILL');
    const timer = setTimeout(kill, STEP_TIMEOUT_MS);
    void Promise.race(this.#servers.map(ended)).then(kill, kill);
    await ended(child);
    clearTimeout(timer);
    if (child.exitCode !== 0) throw new Error(`${program} failed to start the S3 server:\n${this.#output()}`);
  }

  /** Starts a program that runs until the server is stopped. */
  #serve(program: string, parameters: readonly string[]): void {
    this.#servers.push(this.#spawn(program, parameters));
  }

  /** The programs run on the C library and the Python that they came with. The system ends them when this process ends. */
  #spawn(program: string, parameters: readonly string[]): ChildProcess {
    const output = openSync(join(this.#folder, 'output.txt'), 'a');
    const libraries = ['', '/ceph', '/blas', '/lapack'].map((folder) => CEPH_LIBRARIES + folder).join(':');
    const command =
      program === 'ceph' ? [pythonPath(), join(CEPH_ROOT, 'usr/bin/ceph')] : [join(CEPH_ROOT, 'usr/bin', program)];
    const loader = [join(CEPH_ROOT, 'lib64/ld-linux-x86-64.so.2'), '--library-path', libraries];
    const child = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', ...loader, ...command, '-c', join(this.#folder, 'ceph.conf'), ...parameters],
      { stdio: ['ignore', output, output], env: { ...process.env, ...PYTHON_ENVIRONMENT } },
    );
    closeSync(output);
    return child;
  }

  async #untilAnswered(endpoint: string): Promise<void> {
    const deadline = Date.now() + STEP_TIMEOUT_MS;
    while (Date.now() < deadline && this.#servers.every(isRunning)) {
      const answer = await fetch(endpoint).catch(() => null);
      await answer?.arrayBuffer();
      if (answer?.ok) return;
      await sleep(POLL_INTERVAL_MS);
    }
    throw new Error(`The S3 gateway does not answer:\n${this.#output()}`);
  }

  #output(): string {
    return readFileSync(join(this.#folder, 'output.txt'), 'utf8').trimEnd().split('\n').slice(-20).join('\n');
  }
}

const PYTHON_ENVIRONMENT = {
  PYTHONHOME: join(CEPH_ROOT, 'usr'),
  PYTHONPATH: join(CEPH_ROOT, 'usr/lib/python3/dist-packages'),
  PYTHONDONTWRITEBYTECODE: '1',
};

function pythonPath(): string {
  const programs = join(CEPH_ROOT, 'usr/bin');
  const name = readdirSync(programs).find((program) => /^python3\.\d+$/.test(program));
  return join(programs, name ?? 'python3');
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

async function ended(child: ChildProcess): Promise<void> {
  if (isRunning(child)) await once(child, 'exit');
}
