import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../scripts/free-port.ts';

const START_TIMEOUT_MS = 10_000;
const POLL_INTERVAL_MS = 10;

/** A real web server over a folder. */
export interface Nginx {
  /** `http://127.0.0.1:<port>`, without a slash at its end. */
  readonly base: string;
  stop(): Promise<void>;
}

/** Serves a folder, with an index of every directory, on a free loopback port. */
export async function startNginx(root: string): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-nginx-'));
  const port = await freePort();
  mkdirSync(join(folder, 'temporary'));
  writeFileSync(join(folder, 'nginx.conf'), settings(root, port, folder));
  const server = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')], {
    stdio: 'ignore',
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` },
  });
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill('SIGKILL');
      await once(server, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const base = `http://127.0.0.1:${port}`;
  if (await answers(base)) return { base, stop };
  const log = readFileSync(join(folder, 'error.log'), 'utf8');
  await stop();
  throw new Error(`nginx did not start:\n${log}`);
}

/** One process in the foreground, so that ending it ends the server. */
function settings(root: string, port: number, folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/temporary;`,
  );
  return `daemon off;
master_process off;
pid ${folder}/nginx.pid;
events {}
http {
  ${temporary.join('\n  ')}
  access_log off;
  types { video/mp4 mp4; audio/wav wav; application/vnd.apple.mpegurl m3u8; application/dash+xml mpd; }
  server {
    listen 127.0.0.1:${port};
    root ${root};
    autoindex on;
  }
}
`;
}

async function answers(base: string): Promise<boolean> {
  for (const deadline = Date.now() + START_TIMEOUT_MS; Date.now() < deadline; await sleep(POLL_INTERVAL_MS)) {
    const answer = await fetch(base).catch(() => null);
    await answer?.arrayBuffer();
    if (answer !== null) return true;
  }
  return false;
}
