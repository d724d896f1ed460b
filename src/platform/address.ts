import { isIP, SocketAddress } from 'node:net';

/**
 * The one spelling of an IP address: IPv6 compressed and lower case, `::ffff:` unwrapped.
 * Undefined for anything that is not an address.
 */
export function canonicalizeAddress(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  // A scope id (%eth0) is free text that is local to a machine, and not part of an address.
  if (family !== 6 || text.includes('%')) return undefined;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return mapped?.[1] ?? address.toLowerCase();
}

// Rate limit keys for an address (§8.2). A site usually has an IPv6 /64, so all of its 2^64 addresses count as one caller. A /48,
// which has 65,536 of these, is cheap to rent.

/** `203.0.113.7`, `2001:db8:1:2::/64`, or `unknown`, for an address in canonical form. */
export const toAddressKey = (address: string): string => findNetwork(address, 64) ?? address;

const GROUPS = 8;

/** For an address in canonical form, such as `2001:db8:1::/48` for 48 bits; undefined for anything but IPv6. */
export function findNetwork(address: string, bits: 48 | 64): string | undefined {
  // In canonical form, only IPv6 addresses have a colon.
  if (!address.includes(':')) return undefined;
  const [head = '', tail = ''] = address.split('::');
  const first = splitGroups(head);
  const last = splitGroups(tail);
  // The zeros that `::` stands for.
  const zeros = new Array<string>(Math.max(0, GROUPS - first.length - last.length)).fill('0');
  const prefix = [...first, ...zeros, ...last].slice(0, bits / 16).join(':');
  return `${canonicalizeAddress(`${prefix}::`) ?? address}/${bits}`;
}

const splitGroups = (text: string): readonly string[] => (text === '' ? [] : text.split(':'));

// Loopback hosts: the hosts that OAuth allows over plain http, and those that no other machine can reach.

/** Names of this machine in an IPv4 network. */
export const IPV4_LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1'];

/** The literal hosts of RFC 8252 §7.3, as `URL.hostname` writes them: only these may be used without https. */
export const LOOPBACK_HOSTS: readonly string[] = [...IPV4_LOOPBACK_HOSTS, '[::1]'];

export const isLoopbackHost = (hostname: string): boolean => LOOPBACK_HOSTS.includes(hostname);

/**
 * True if a host in a URL, or to listen on, can be reached only from this machine: `localhost` and its subdomains (RFC 6761 §6.3),
 * 127.0.0.0/8, `::1`; IPv6 with or without brackets.
 */
export function isOnThisMachine(host: string): boolean {
  const name = normalizeHost(host);
  return /^((.+\.)?localhost|127\.[\d.]+|::1)$/.test(canonicalizeAddress(name) ?? name);
}

/** True if a token sent to this URL cannot be read in transit. */
export function isSafeForTokens(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** A host in lower case, without the brackets of IPv6 or the trailing dot of the DNS root. */
export const normalizeHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
