import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OwnAddress } from '../../../scripts/own-address.ts';
import { startProgram } from './file-server.ts';

/** A pooler in front of a server's databases. */
export interface Pooler {
  /** The address of a database by way of the pooler. */
  through(url: string): string;
  stop(): Promise<void>;
}

/** Starts PgBouncer, which gives out sessions as `mode` says. It does not run as root. */
export async function startPgBouncer(
  postgres: OwnAddress,
  mode: 'session' | 'transaction' | 'statement',
): Promise<Pooler> {
  const { base, stop } = await startProgram('pgbouncer', (folder, { host, port }) => {
    const lines = [
      ...['[databases]', `* = host=${postgres.host} port=${postgres.port} user=postgres`],
      ...['[pgbouncer]', `listen_addr = ${host}`, `listen_port = ${port}`, 'unix_socket_dir ='],
      ...['auth_type = any', `pool_mode = ${mode}`],
    ];
    const path = join(folder, 'pgbouncer.ini');
    writeFileSync(path, `${lines.join('\n')}\n`);
    return [...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), path];
  });
  const { host } = new URL(base);
  const through = (url: string) => Object.assign(new URL(url), { host }).href;
  return { through, stop };
}
