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
