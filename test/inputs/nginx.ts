import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../scripts/free-port.ts';

const START_TIMEOUT_MS = 20_000;
const LOOK_INTERVAL_MS = 20;

/** An nginx of the test's own: one process on loopback, with its own configuration and folder for what it writes. */
export interface Nginx {
  /** `http://127.0.0.1:<port>`. */
  readonly base: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts nginx over a folder. The same files are at several addresses: `/html/` and `/json/` list directories, `/plain/`
 * lists nothing, `/no-ranges/` gives no ranges, `/gzip/` answers packed whatever is asked, `/named/` gives a file name.
 */
export async function startNginx(root: string): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-nginx-'));
  const port = await freePort();
  mkdirSync(join(folder, 'temp'));
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, root, port));
  const program = existsSync('/usr/sbin/nginx') ? '/usr/sbin/nginx' : 'nginx';
  const child = spawn(program, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  await untilListening(port);
  return {
    base: `http://127.0.0.1:${port}`,
    pid: child.pid as number,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration(folder: string, root: string, port: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
daemon off;
master_process off;
${process.getuid?.() === 0 ? 'user root;' : ''}
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/temp/${name};`).join('\n  ')}
  access_log off;
  sendfile on;
  server_tokens off;
  absolute_redirect off;
  types { video/mp4 mp4 m4s; audio/wav wav; application/vnd.apple.mpegurl m3u8; application/dash+xml mpd; }
  default_type application/octet-stream;
  server {
    listen 127.0.0.1:${port} backlog=1024;
    location /html/ { alias ${root}/; autoindex on; }
    location /rounded/ { alias ${root}/; autoindex on; autoindex_exact_size off; }
    location /json/ { alias ${root}/; autoindex on; autoindex_format json; }
    location /plain/ { alias ${root}/; }
    location /no-ranges/ { alias ${root}/; autoindex on; max_ranges 0; }
    location /gzip/ { alias ${root}/; add_header Content-Encoding gzip; }
    location /named/ { alias ${root}/; add_header Content-Disposition 'attachment; filename="from the server.mp4"'; }
    location ~ ^/moved/(.*)$ { return 302 /plain/$1; }
  }
}
`;
}

async function untilListening(port: number): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await isListening(port))) {
    if (Date.now() > deadline) throw new Error('nginx does not start; what it says is above');
    await sleep(LOOK_INTERVAL_MS);
  }
}

function isListening(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, '127.0.0.1');
  socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}
