import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { styleText } from 'node:util';
import type { Config } from '#config/config.ts';
import { configFileOf } from '#config/load-config.ts';

/** Returns the lines that tell somebody at a terminal where everything of a running service is. */
export function welcome(config: Config, { address, family, port }: AddressInfo): string {
  const isEverywhere = address === '0.0.0.0' || address === '::';
  const host = isEverywhere ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  const base = `http://${host}:${port}`;
  const { local, s3 } = config.output_sinks;
  const file = configFileOf({ env: process.env, cwd: process.cwd() });
  const lines = [
    ['Console', `${base}/`],
    ['API reference', config.server.docs ? `${base}/docs` : 'switched off (server.docs)'],
    ['Outputs', [local.base_dir, ...(s3?.buckets ?? []).map((bucket) => `s3://${bucket}`)].join(', ')],
    ['Configuration', existsSync(file) ? file : `defaults: there is no ${file}`],
  ];
  const text = lines.map(([label = '', value = '']) => `  ${styleText('bold', label.padEnd(15))}${value}\n`).join('');
  return `\n${text}\n  Ctrl-C stops the service.\n\n`;
}
