// Decisions 10: which proxy a URL is reached by. NO_PROXY means what it means to curl and Go.
import { BlockList, isIP } from 'node:net';
import type { ProxySettings } from '../config/config.ts';
import { isOnThisMachine, normalizeHost } from '../loopback.ts';

/** The URL of the proxy, or undefined where the URL is to be reached directly. */
export type ProxyRule = (url: URL) => string | undefined;

type Exemption = (host: string, port: number) => boolean;

export function createProxyRule({ httpProxy, httpsProxy, noProxy }: ProxySettings): ProxyRule {
  const exemptions = [isOnThisMachine, ...noProxy.map(readExemption)];
  return ({ protocol, hostname, port }) => {
    const isHttps = protocol === 'https:';
    const host = normalizeHost(hostname);
    const to = Number(port) || (isHttps ? 443 : 80);
    if (exemptions.some((isExempt) => isExempt(host, to))) return undefined;
    return isHttps ? httpsProxy : httpProxy;
  };
}

function readExemption(entry: string): Exemption {
  if (entry === '*') return () => true;
  const [, host = entry, port] = isIP(entry) ? [] : (/^(.+):(\d+)$/.exec(entry) ?? []);
  const isHost = readHost(normalizeHost(host));
  return (asked, to) => (port === undefined || Number(port) === to) && isHost(asked);
}

function readHost(host: string): (asked: string) => boolean {
  if (/^\*?\./.test(host)) {
    const parent = host.replace(/^\*?\./, '');
    return (asked) => asked !== parent && isBelow(asked, parent);
  }
  const [address = '', prefix] = host.split('/');
  if (isIP(address) === 0) return (asked) => isBelow(asked, host);
  const bits = isIP(address) === 4 ? 32 : 128;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)) {
    return () => false;
  }
  const list = blockList([`${address}/${prefix ?? bits}`]);
  return (asked) => isIn(list, asked);
}

const isBelow = (host: string, parent: string): boolean =>
  host === parent || host.endsWith(`.${parent}`);

const isIn = (list: BlockList, host: string): boolean => {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 4 ? 'ipv4' : 'ipv6');
};

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix), isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}
