// How the gateway gets out, where only a proxy does: the variables that other programs read, too.
import { isPercentDecodable } from '../../platform/json.ts';
import type { Rule } from '../rules.ts';
import { defineSetting } from '../setting.ts';

const proxyUrl: Rule<string> = {
  parse: (text) => (/^https?:\/\/\S+$/i.test(text) && isProxy(text) ? text : undefined),
  allowed:
    'http://host:port or https://host:port, with user:password@ before the host where the proxy asks for it (percent-encoded)',
};

function isProxy(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, search, hash, username, password } = new URL(text);
  const isWhole = (username === '') === (password === '');
  return (
    `${pathname}${search}${hash}` === '/' && isWhole && isPercentDecodable(username + password)
  );
}

/** As lenient as other programs are: an entry that means nothing here matches nothing. */
const hosts: Rule<readonly string[]> = {
  parse: (text) => text.split(/[\s,]+/).filter((entry) => entry !== ''),
  allowed:
    'a comma-separated list of hosts, host:port, addresses and CIDR ranges, or * for every host',
};

const httpProxy = defineSetting('HTTP_PROXY', proxyUrl, {
  alias: 'http_proxy',
  summary: 'The proxy for http URLs of the provider.',
  details: 'Also read as `http_proxy`. Addresses of this machine never go through a proxy.',
  isSecret: true,
});

export const outboundSettings = {
  httpProxy,
  httpsProxy: defineSetting('HTTPS_PROXY', proxyUrl, {
    alias: 'https_proxy',
    default: { text: 'HTTP_PROXY', compute: (read) => read(httpProxy) },
    summary: 'The proxy for https URLs, by CONNECT.',
    details:
      'Those of the provider, and of the metadata documents of clients. Also read as `https_proxy`. Not together with CIMD_ALLOWED_HOSTS=*.',
    isSecret: true,
  }),
  noProxy: defineSetting('NO_PROXY', hosts, {
    alias: 'no_proxy',
    default: { value: [] },
    summary: 'Hosts that are reached without the proxy.',
    details:
      '`example.com` is the host and all below it, `.example.com` only those below it. Also read as `no_proxy`.',
  }),
};
