// Which requests are let through, and how large they may be.

import { BlockList, isIP } from 'node:net';
import { host, integer, list, origin, type Rule } from '../rules.ts';
import { defineSetting, type ValuesOf } from '../setting.ts';

const origins = list(origin, 'a comma-separated list of origins such as https://app.example.com');
const hosts = list(host, 'a comma-separated list of hosts such as gateway.internal:8080');

const trustProxy: Rule<TrustProxy> = {
  parse: parseTrustProxy,
  allowed:
    'all, none, a number of proxies from 1 to 100, or a comma-separated list of addresses and CIDR ranges',
};

export const httpSettings = {
  allowedOrigins: defineSetting('ALLOWED_ORIGINS', origins, {
    default: { value: [] },
    summary: 'Origins of the browser clients that may call.',
    details:
      'The origin of BASE_URL is always allowed. So are `http://localhost:*` and `http://127.0.0.1:*`, unless NODE_ENV=production.',
  }),
  allowedHosts: defineSetting('ALLOWED_HOSTS', hosts, {
    default: { value: [] },
    summary: 'Further values of the `Host` header that are accepted.',
    details:
      'An entry without a port allows any port. The host of BASE_URL is always accepted. So are `localhost`, `127.0.0.1` and `[::1]`, unless NODE_ENV=production.',
  }),
  trustProxy: defineSetting('TRUST_PROXY', trustProxy, {
    default: { value: { kind: 'all' }, text: 'all' },
    summary: 'Which proxies to believe about the address of a caller.',
    details:
      '`all` takes the first entry of `X-Forwarded-For`, else `X-Real-IP`. `none` takes the address of the socket. A number takes the address at that place from the right of `X-Forwarded-For`. Addresses and CIDR ranges are your proxies: they are skipped from the right.',
  }),
  maxBodyBytes: defineSetting('MAX_BODY_BYTES', integer(1024, 104_857_600), {
    default: { value: 1_048_576 },
    summary: 'The largest request body, in bytes.',
    details: 'A larger one gets a 413.',
  }),
  maxBodyValues: defineSetting('MAX_BODY_VALUES', integer(100, 10_000_000), {
    default: { value: 20_000 },
    summary: 'The most JSON values in a request body.',
    details:
      'Objects, arrays, strings, numbers, `true`, `false` and `null` count. A body with more gets a 413.',
  }),
  maxTokenBytes: defineSetting('MAX_TOKEN_BYTES', integer(1024, 131_072), {
    default: { value: 16_384 },
    summary: 'The longest access token, in bytes.',
    details:
      'Tokens of the gateway are short. Those of the provider are long for users in many groups, and a proxy in front must let headers of that length through, too.',
  }),
  streamKeepaliveMs: defineSetting('STREAM_KEEPALIVE_MS', integer(10, 3_600_000), {
    default: { value: 15_000 },
    summary: 'Milliseconds between keep-alive comments on a silent event stream.',
    details:
      'Set it below the [idle time-out](operations/network.md#idle-time-outs) of every proxy between clients and the gateway.',
  }),
  maxConnections: defineSetting('MAX_CONNECTIONS', integer(0, 10_000_000), {
    default: { value: 10_000 },
    summary: 'The most open connections of this process; 0 for no limit.',
    details: 'At the limit, the connection that has been idle longest is closed.',
  }),
};

export type HttpConfig = ValuesOf<typeof httpSettings>;

/** `TRUST_PROXY`: whom to believe about the caller's address. */
export type TrustProxy =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  /** The n-th address from the right. */
  | { readonly kind: 'hops'; readonly hops: number }
  /** Trusted proxies are skipped from the right. */
  | { readonly kind: 'networks'; readonly trusts: (address: string) => boolean };

function parseTrustProxy(text: string): TrustProxy | undefined {
  if (text === 'all' || text === 'none') return { kind: text };
  if (/^\d+$/.test(text)) {
    const hops = Number(text);
    return hops >= 1 && hops <= 100 ? { kind: 'hops', hops } : undefined;
  }
  const networks = new BlockList();
  const known = text.split(',').every((entry) => addNetwork(networks, entry.trim()));
  if (!known) return undefined;
  const trusts = (address: string) => {
    const family = isIP(address);
    return family !== 0 && networks.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
  return { kind: 'networks', trusts };
}

function addNetwork(networks: BlockList, entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || address.includes('%')) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  if (bits === undefined) {
    networks.addAddress(address, type);
    return true;
  }
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) return false;
  networks.addSubnet(address, Number(bits), type);
  return true;
}
