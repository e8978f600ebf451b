import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { LINK_LOCAL_AND_METADATA } from '#config/addresses.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];

/** IPv6 forms that hold an IPv4 address: the prefix, and at which of the 16 bytes the address begins. */
const FORMS_WITH_IPV4: readonly { readonly network: Network; readonly at: number }[] = [
  { network: ipaddr.parseCIDR('::ffff:0:0/96'), at: 12 }, // Mapped (RFC 4291 §2.5.5.2).
  { network: ipaddr.parseCIDR('::/96'), at: 12 }, // Compatible, deprecated (RFC 4291 §2.5.5.1).
  { network: ipaddr.parseCIDR('::ffff:0:0:0/96'), at: 12 }, // Translated (RFC 2765 §2.1).
  { network: ipaddr.parseCIDR('64:ff9b::/96'), at: 12 }, // NAT64 (RFC 6052).
  { network: ipaddr.parseCIDR('64:ff9b:1::/48'), at: 12 }, // NAT64 inside a network (RFC 8215), as /96.
  { network: ipaddr.parseCIDR('2002::/16'), at: 2 }, // 6to4 (RFC 3056).
];

/** Teredo (RFC 4380): the address of the client with all bits turned round. */
const TEREDO = ipaddr.parseCIDR('2001::/32');

/** ISATAP (RFC 5214): an interface identifier that ends in the IPv4 address, behind either of these bytes. */
const ISATAP_MARKS = ['00005efe', '02005efe'];

/** Addresses that this service never connects to for a caller: link-local ones, cloud metadata, and what is configured. */
export class DeniedNetworks {
  readonly #networks: readonly Network[];

  constructor(networks: readonly string[]) {
    this.#networks = [...LINK_LOCAL_AND_METADATA, ...networks].map(parseNetwork);
  }

  /** Tells whether an address is denied, in any notation and any form of IPv6 that carries it. Malformed addresses are denied. */
  denies(text: string): boolean {
    const bare = text.replace(/%.*$/s, '');
    if (isIP(bare) === 0) return true;
    return standsFor(ipaddr.parse(bare)).some((address) =>
      this.#networks.some((network) => isInside(address, network)),
    );
  }
}

function parseNetwork(text: string): Network {
  return text.includes('/') ? ipaddr.parseCIDR(text) : hostNetwork(ipaddr.parse(text));
}

function hostNetwork(address: Address): Network {
  return [address, address.toByteArray().length * 8];
}

function isInside(address: Address, [network, prefixLength]: Network): boolean {
  return address.kind() === network.kind() && address.match(network as never, prefixLength);
}

/** An address, the IPv4 address in it, and where a connection to it ends up: an unspecified one reaches this host. */
function standsFor(address: Address): Address[] {
  const inner = innerAddress(address);
  const forms = inner === null ? [address] : [address, inner];
  return forms.flatMap((form) => (form.range() === 'unspecified' ? [form, loopbackLike(form)] : [form]));
}

function loopbackLike(address: Address): Address {
  return ipaddr.parse(address.kind() === 'ipv4' ? '127.0.0.1' : '::1');
}

function innerAddress(address: Address): Address | null {
  if (address.kind() === 'ipv4') return null;
  const bytes = address.toByteArray();
  const form = FORMS_WITH_IPV4.find(({ network }) => isInside(address, network));
  if (form !== undefined) return ipaddr.fromByteArray(bytes.slice(form.at, form.at + 4));
  if (isInside(address, TEREDO)) return ipaddr.fromByteArray(bytes.slice(12).map((byte) => byte ^ 0xff));
  const mark = Buffer.from(bytes.slice(8, 12)).toString('hex');
  return ISATAP_MARKS.includes(mark) ? ipaddr.fromByteArray(bytes.slice(12)) : null;
}
