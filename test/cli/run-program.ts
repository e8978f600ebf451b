import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A folder to run the program in, with the samples, and a home of its own for its state. */
export class Workplace {
  readonly folder = temporaryFolder();
  readonly #home = temporaryFolder();

  constructor() {
    for (const name of ['evening-light.mp4', 'four-notes.mp3', 'publication']) {
      cpSync(join(ROOT, 'samples', name), join(this.folder, name), { recursive: true });
    }
  }

  get stateFolder(): string {
    return join(this.#home, 'state', 'attestream');
  }

  get dataFolder(): string {
    return join(this.#home, 'data', 'attestream');
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  start(...args: readonly string[]): ChildProcess {
    const home = { XDG_STATE_HOME: join(this.#home, 'state'), XDG_DATA_HOME: join(this.#home, 'data') };
    return spawn(process.execPath, [join(ROOT, 'src/cli/main.ts'), ...args], {
      cwd: this.folder,
      env: { ...process.env, ...home },
    });
  }

  async run(...args: readonly string[]): Promise<Ended> {
    return await ended(this.start(...args));
  }

  /** Runs the program with lines on its standard input. */
  async runWith(lines: readonly string[], ...args: readonly string[]): Promise<Ended> {
    const child = this.start(...args);
    child.stdin?.end(lines.map((line) => `${line}\n`).join(''));
    return await ended(child);
  }
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function ended(child: ChildProcess): Promise<Ended> {
  const { stdout, stderr } = child;
  const [out, errors, [code]] = await Promise.all([
    stdout === null ? '' : text(stdout),
    stderr === null ? '' : text(stderr),
    once(child, 'exit'),
  ]);
  return { code: code as number | null, stdout: out, stderr: errors };
}

/**
 * Serves a film whose last bytes never come. Once they were asked for, its output is staged; `address` is to be signed.
 */
export async function stallingFilm(
  t: TestContext,
): Promise<{ readonly address: string; readonly asked: Promise<void> }> {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const film = readFileSync(join(ROOT, 'samples/evening-light.mp4'));
  const free = Buffer.alloc(FREE_SIZE_BYTES);
  free.writeUInt32BE(FREE_SIZE_BYTES);
  free.write('free', 4);
  const bytes = Buffer.concat([film, free]);
  const server = createServer((request, response) => {
    const [, first = '0', last = `${bytes.length - 1}`] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const [start, end] = [Number(first), Math.min(Number(last), bytes.length - 1)];
    if (end > bytes.length / 2) return resolve();
    response.writeHead(206, {
      etag: '"film"',
      'content-type': 'video/mp4',
      'content-length': end - start + 1,
      'content-range': `bytes ${start}-${end}/${bytes.length}`,
    });
    response.end(bytes.subarray(start, end + 1));
  }).listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/film.mp4`, asked };
}

const FREE_SIZE_BYTES = 64 * 1024 * 1024;
