// How the gateway gets out, where only a proxy does: the variables that other programs read, too.
import type { Config, ProxySettings } from './config.ts';
import type { Rule } from './rules.ts';
import type { Setting } from './setting.ts';

const proxyUrl: Rule<string> = {
  parse: (text) => (/^https?:\/\/\S+$/i.test(text) && isProxy(text) ? text : undefined),
  allowed:
    'http://host:port or https://host:port, with user:password@ before the host where the proxy asks for it (percent-encoded)',
};

function isProxy(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, search, hash, username, password } = new URL(text);
  const isWhole = (username === '') === (password === '');
  return `${pathname}${search}${hash}` === '/' && isWhole && isDecodable(username + password);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** As lenient as other programs are: an entry that means nothing here matches nothing. */
const hosts: Rule<readonly string[]> = {
  parse: (text) => text.split(/[\s,]+/).filter((entry) => entry !== ''),
  allowed: 'a comma list of hosts, host:port, addresses and CIDR ranges, or * for every host',
};

const chapter = 'Outbound network';

export const proxySettings: {
  readonly [Name in keyof ProxySettings]: Setting<ProxySettings[Name]>;
} = {
  httpProxy: {
    variable: 'HTTP_PROXY',
    alias: 'http_proxy',
    rule: proxyUrl,
    fallback: () => undefined,
    shown: '',
    help: 'Proxy by which http URLs of the provider are reached. Also read as http_proxy. Addresses of this machine never go through a proxy.',
    chapter,
    secret: true,
  },
  httpsProxy: {
    variable: 'HTTPS_PROXY',
    alias: 'https_proxy',
    rule: proxyUrl,
    fallback: ({ httpProxy }) => httpProxy,
    shown: '',
    help: 'Proxy by which https URLs of the provider and the metadata documents of clients are reached (by CONNECT). Also read as https_proxy. Unset: HTTP_PROXY is used. Not together with CIMD_ALLOWED_HOSTS=*.',
    chapter,
    secret: true,
  },
  noProxy: {
    variable: 'NO_PROXY',
    alias: 'no_proxy',
    rule: hosts,
    fallback: () => [],
    shown: '',
    help: 'Hosts that are reached without the proxy: example.com means the host and all below it, .example.com only those below it. Also read as no_proxy.',
    chapter,
  },
};

/** What does not go together, one sentence each. */
export function proxyProblems({ httpsProxy, cimdAllowedHosts }: Config): readonly string[] {
  if (httpsProxy === undefined || !cimdAllowedHosts.includes('*')) return [];
  return [
    'CIMD_ALLOWED_HOSTS: * is not allowed with HTTPS_PROXY or HTTP_PROXY, because the proxy looks the hosts up, and the gateway cannot refuse addresses inside your network. Name the hosts.',
  ];
}
