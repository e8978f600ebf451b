/** A loopback address and a port on it. */
export interface OwnAddress {
  readonly host: string;
  readonly port: number;
}

/** Below the ports that the system gives out by itself (ip_local_port_range in ip(7)). */
const FIRST_PORT = 10_000;

/**
 * A loopback address that no other process takes: 127.128.0.0/9 with this process's identifier, which Linux bounds to 22 bits.
 * Linux listens on all of 127.0.0.0/8 without further ado.
 */
const HOST = [127, 128 + (process.pid >> 16), (process.pid >> 8) & 0xff, process.pid & 0xff].join('.');

let count = 0;

/**
 * Returns an address for a server that has to be told its port before it binds it. Nothing else binds it in between: other
 * processes have other hosts, and every call returns another port.
 */
export function ownAddress(): OwnAddress {
  count += 1;
  return { host: HOST, port: FIRST_PORT + count };
}
