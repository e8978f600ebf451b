const MAX_PORT = 65_535;

/** Where the service listens. */
export interface BindAddress {
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

/** Whether only this host can reach the address. */
export function isLoopback({ host }: BindAddress): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
