import { isIP, SocketAddress } from 'node:net';

/**
 * The one spelling of an IP address: IPv6 compressed and lower case, `::ffff:` unwrapped.
 * Undefined for anything that is not an address.
 */
export function canonicalizeAddress(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  // A scope id (%eth0) is local to a machine and free text: not part of an address.
  if (family !== 6 || text.includes('%')) return undefined;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  return mapped?.[1] ?? address.toLowerCase();
}

// By what an address is counted (§8.2). A site gets a /64 of IPv6, so its 2^64 addresses are
// one caller.

/** `203.0.113.7`, `2001:db8:1:2::/64`, or `unknown`, of an address in its canonical form. */
export function toAddressKey(address: string): string {
  // In a canonical address only IPv6 has a colon.
  if (!address.includes(':')) return address;
  const prefix = findLeadingGroups(address).join(':');
  return `${canonicalizeAddress(`${prefix}::`) ?? address}/64`;
}

const PREFIX_GROUPS = 4;
const GROUPS = 8;

/** The first four of the eight groups, zeros that `::` stands for included. */
function findLeadingGroups(address: string): readonly string[] {
  const [head = '', tail] = address.split('::');
  const first = splitGroups(head);
  const last = splitGroups(tail ?? '');
  const zeros = new Array<string>(Math.max(0, GROUPS - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last].slice(0, PREFIX_GROUPS);
}

const splitGroups = (text: string): readonly string[] => (text === '' ? [] : text.split(':'));
