import { isIP } from 'node:net';

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

/** Whether a text names a network: an address, with or without the length of a prefix. */
export function isNetwork(text: string): boolean {
  const [, address = '', prefixLength = '0'] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(prefixLength) <= (version === 4 ? 32 : 128);
}
