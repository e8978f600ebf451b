import { isIP } from 'node:net';

const MAX_PORT = 65_535;

/** The address that the service listens on. */
interface BindAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** Reads `host:port` or `[ipv6]:port`; null where it is neither. */
export function parseBindAddress(value: string): BindAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(value);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > MAX_PORT ? null : { host, port };
}

/** Returns true for a host that only this one can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Networks that inputs are never fetched from, whatever is configured: link-local addresses, and where clouds tell virtual
 * machines their credentials (AWS, Google, Azure and others at 169.254.169.254 and fd00:ec2::254, Google at
 * fd20:ce::254, Alibaba, Azure's host, Oracle).
 */
export const LINK_LOCAL_AND_METADATA = [
  '169.254.0.0/16',
  'fe80::/10',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
] as const;

/** Returns true for a network: an address, with or without the length of a prefix. */
export function isNetwork(text: string): boolean {
  const [, address = '', prefixLength = '0'] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(prefixLength) <= (version === 4 ? 32 : 128);
}

/** The name of an S3 bucket; older ones have capitals and underscores. */
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;

export function isBucketName(text: string): boolean {
  return BUCKET.test(text);
}
