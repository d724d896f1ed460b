// Which hosts are this machine. Two questions: what OAuth lets use http, and what no other machine reaches.
import { canonicalizeAddress } from './address.ts';

/** What names this machine in an IPv4 network. */
export const IPV4_LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1'];

/** The literal hosts of RFC 8252 §7.3, as `URL.hostname` writes them: the only ones that may go without https. */
export const LOOPBACK_HOSTS: readonly string[] = [...IPV4_LOOPBACK_HOSTS, '[::1]'];

export const isLoopbackHost = (hostname: string): boolean => LOOPBACK_HOSTS.includes(hostname);

/**
 * Whether a host of a URL, or one to listen on, is reached from this machine alone: `localhost` and what
 * is below it (RFC 6761 §6.3), 127.0.0.0/8, `::1`; IPv6 with brackets or without.
 */
export function isOnThisMachine(host: string): boolean {
  const name = normalizeHost(host);
  return /^((.+\.)?localhost|127\.[\d.]+|::1)$/.test(canonicalizeAddress(name) ?? name);
}

/** Whether a token that goes to this URL can be read by nobody on the way. */
export function isSafeForTokens(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** A host in lower case, without the brackets of IPv6 and the dot of the DNS root. */
export const normalizeHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
