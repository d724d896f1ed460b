// §14: through which proxy a URL is reached. NO_PROXY means what it means to curl and Go.
import { BlockList, isIP } from 'node:net';
import { isOnThisMachine, normalizeHost } from '../address.ts';

/** The way out of the network, with the names that other programs have for it, too. */
export interface OutboundConfig {
  /** For http URLs. May hold a password, as the next one. */
  readonly httpProxy: string | undefined;
  readonly httpsProxy: string | undefined;
  /** Hosts that are reached directly, as they were written. */
  readonly noProxy: readonly string[];
}

/** The URL of the proxy, or undefined where the URL is to be reached directly. */
export type ChooseProxy = (url: URL) => string | undefined;

type IsExempt = (host: string, port: number) => boolean;

export function createProxyChoice({ httpProxy, httpsProxy, noProxy }: OutboundConfig): ChooseProxy {
  const exemptions = [isOnThisMachine, ...noProxy.map(parseExemption)];

  return function chooseProxy({ protocol, hostname, port: writtenPort }) {
    const isHttps = protocol === 'https:';
    const host = normalizeHost(hostname);
    const port = Number(writtenPort) || (isHttps ? 443 : 80);
    if (exemptions.some((isExempt) => isExempt(host, port))) return undefined;
    return isHttps ? httpsProxy : httpProxy;
  };
}

/** An entry of NO_PROXY: `*`, or a host, an address or a network, each with a port or without. */
function parseExemption(entry: string): IsExempt {
  if (entry === '*') return () => true;
  const [, writtenHost = entry, writtenPort] = isIP(entry)
    ? []
    : (/^(.+):(\d+)$/.exec(entry) ?? []);
  const matchesHost = parseHostPattern(normalizeHost(writtenHost));
  return (host, port) =>
    (writtenPort === undefined || Number(writtenPort) === port) && matchesHost(host);
}

function parseHostPattern(pattern: string): (host: string) => boolean {
  if (/^\*?\./.test(pattern)) {
    const parent = pattern.replace(/^\*?\./, '');
    return (host) => host !== parent && isSameOrBelow(host, parent);
  }
  const [address = '', prefix] = pattern.split('/');
  const family = isIP(address);
  if (family === 0) return (host) => isSameOrBelow(host, pattern);
  const bits = family === 4 ? 32 : 128;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) {
    return () => false;
  }
  const network = new BlockList();
  network.addSubnet(address, Number(prefix ?? bits), family === 4 ? 'ipv4' : 'ipv6');
  return (host) => isInNetwork(network, host);
}

const isSameOrBelow = (host: string, parent: string): boolean =>
  host === parent || host.endsWith(`.${parent}`);

function isInNetwork(network: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && network.check(host, family === 4 ? 'ipv4' : 'ipv6');
}
