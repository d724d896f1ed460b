// Settings of the HTTP server: accepted requests, size limits, sessions and proxies.
import { BlockList, isIP } from 'node:net';
import { decodePercent } from '../../platform/json.ts';
import {
  anyText,
  flag,
  host,
  integer,
  listOf,
  ONE_YEAR_SECONDS,
  origin,
  type Rule,
  textWith,
} from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';

const origins = listOf(origin, 'a comma-separated list of origins such as https://app.example.com');
const hosts = listOf(host, 'a comma-separated list of hosts such as gateway.internal:8080');

const trustProxy: Rule<TrustProxy> = {
  parse: parseTrustProxy,
  allowed:
    'all, none, a number of proxies from 1 to 100, or a comma-separated list of addresses and CIDR ranges',
};

export const httpSettings = {
  allowedOrigins: defineSetting('ALLOWED_ORIGINS', origins, {
    default: [],
    summary: 'Origins from which browser clients may call.',
    details:
      'The origin of BASE_URL is always allowed. So are `http://localhost:*` and `http://127.0.0.1:*`, unless NODE_ENV=production.',
  }),
  allowedHosts: defineSetting('ALLOWED_HOSTS', hosts, {
    default: [],
    summary: 'Additional values of the `Host` header that are accepted.',
    details:
      'An entry without a port allows any port. The host of BASE_URL is always accepted. So are `localhost`, `127.0.0.1` and `[::1]`, unless NODE_ENV=production.',
  }),
  trustProxy: defineSetting('TRUST_PROXY', trustProxy, {
    default: { kind: 'all' },
    written: 'all',
    summary: 'The proxies that are trusted to report the address of a caller.',
    details:
      '`all` uses the first entry of `X-Forwarded-For`, or else `X-Real-IP`. `none` uses the address of the socket. A number uses the address at that position from the right of `X-Forwarded-For`. Addresses and CIDR ranges are your proxies: they are skipped from the right.',
  }),
  maxBodyBytes: defineSetting('MAX_BODY_BYTES', integer(1024, 104_857_600), {
    default: 1_048_576,
    summary: 'The largest request body, in bytes.',
    details: 'A larger one gets a 413.',
  }),
  maxBodyValues: defineSetting('MAX_BODY_VALUES', integer(100, 10_000_000), {
    default: 20_000,
    summary: 'Maximum number of JSON values in a request body.',
    details:
      'Objects, arrays, strings, numbers, `true`, `false` and `null` count. A body with more gets a 413.',
  }),
  maxTokenBytes: defineSetting('MAX_TOKEN_BYTES', integer(1024, 131_072), {
    default: 16_384,
    summary: 'The longest access token, in bytes.',
    details:
      'The gateway’s own tokens are short. Those from the provider are long for users in many groups, and a proxy in front must also allow headers of that length.',
  }),
  streamKeepaliveMs: defineSetting('STREAM_KEEPALIVE_MS', integer(10, 3_600_000), {
    default: 15_000,
    summary: 'Milliseconds between keep-alive comments on a silent event stream.',
    details:
      'Set it below the [idle timeout](operations/network.md#idle-timeouts) of every proxy between clients and the gateway.',
  }),
  maxConnections: defineSetting('MAX_CONNECTIONS', integer(0, 10_000_000), {
    default: 10_000,
    summary: 'Maximum number of open connections in this process; 0 for no limit.',
    details: 'At the limit, the connection that has been idle longest is closed.',
  }),
};

/** `TRUST_PROXY`: the proxies that are trusted to report the caller's address. */
export type TrustProxy =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  /** The caller has the n-th address from the right. */
  | { readonly kind: 'hops'; readonly hops: number }
  /** The caller has the first address from the right that is not a trusted proxy's. */
  | { readonly kind: 'networks'; readonly trusts: (address: string) => boolean };

function parseTrustProxy(text: string): TrustProxy | undefined {
  if (text === 'all' || text === 'none') return { kind: text };
  if (/^\d+$/.test(text)) {
    const hops = Number(text);
    return hops >= 1 && hops <= 100 ? { kind: 'hops', hops } : undefined;
  }
  const networks = new BlockList();
  if (!text.split(',').every((entry) => addNetwork(networks, entry.trim()))) return undefined;
  return {
    kind: 'networks',
    trusts(address) {
      const family = isIP(address);
      return family !== 0 && networks.check(address, family === 4 ? 'ipv4' : 'ipv6');
    },
  };
}

function addNetwork(networks: BlockList, entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || address.includes('%')) return false;
  const longest = family === 4 ? 32 : 128;
  // A single address is the smallest network.
  const length = bits ?? String(longest);
  if (!/^\d{1,3}$/.test(length) || Number(length) > longest) return false;
  networks.addSubnet(address, Number(length), family === 4 ? 'ipv4' : 'ipv6');
  return true;
}

// Settings of sessions, streams and calls on /mcp.

const sessionSettings = {
  ttlSeconds: defineSetting('MCP_SESSION_TTL_SECONDS', integer(60, ONE_YEAR_SECONDS), {
    default: 86_400,
    summary: 'Seconds until a session without requests ends.',
    details: 'Every accepted request restarts this time.',
  }),
  maxPerUser: defineSetting('MCP_USER_SESSIONS_MAX', integer(0, 1_000_000), {
    default: 1000,
    summary: 'Maximum number of sessions of one user; 0 for no limit.',
    details: 'Opening one more ends the session that would expire first.',
  }),
  keyPrefix: defineSetting('MCP_SESSION_KEY_PREFIX', anyText, {
    default: 'mcp:session:',
    summary: 'The prefix of session keys in the store.',
  }),
};

const callSettings = {
  streams: defineSetting('MCP_STREAMS', flag, {
    default: false,
    summary: 'Let clients keep a stream open and subscribe to resources.',
    details: 'With `GET /mcp`, or `subscriptions/listen`. Each stream uses a connection.',
  }),
  maxCallsPerUser: defineSetting('MCP_USER_CALLS_MAX', integer(0, 1_000_000), {
    default: 64,
    summary: 'Maximum number of long calls of one user at the same time; 0 for no limit.',
    details:
      'Calls count once they have run for a second. Event streams do not count. One more call gets a 429.',
  }),
  streamAfterMs: defineSetting('STREAM_AFTER_MS', integer(0, 3_600_000), {
    default: 10_000,
    summary:
      'Milliseconds after which the response to a running call becomes an event stream; 0 for never.',
    details:
      'This keeps proxies from closing a silent connection: set it below their [idle timeouts](operations/network.md#idle-timeouts). It needs a client that accepts streams, and no session before 2025-03-26. All others get JSON at the end, as for short calls.',
  }),
};

const taskSettings = {
  taskTtlSeconds: defineSetting('MCP_TASK_TTL_SECONDS', integer(60, 604_800), {
    default: 3600,
    summary: 'Seconds for which a task may run, and for which its result is kept afterwards.',
    details: 'Tasks are calls whose result the client fetches later, in the stateless era.',
  }),
  maxTasksPerUser: defineSetting('MCP_USER_TASKS_MAX', integer(0, 8192), {
    default: 32,
    summary:
      'Maximum number of tasks of one user that run at the same time, on all replicas; 0 for no limit.',
    details: 'One more gets a 429. Tasks that run on a replica also count as calls there.',
  }),
};

export const mcpSettings = { ...sessionSettings, ...callSettings, ...taskSettings };

export const readMcpConfig = (read: Read) => ({
  sessions: readAll(sessionSettings, read),
  tasks: readAll(taskSettings, read),
  ...readAll(callSettings, read),
});

// Outbound proxies, with the variables that other programs read as well.

const proxyUrl = textWith(
  (text) => /^https?:\/\/\S+$/i.test(text) && isProxy(text),
  'http://host:port or https://host:port, with user:password@ before the host if the proxy requires it (percent-encoded)',
);

function isProxy(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, search, hash, username, password } = new URL(text);
  const isWhole = (username === '') === (password === '');
  return (
    `${pathname}${search}${hash}` === '/' &&
    isWhole &&
    decodePercent(username + password) !== undefined
  );
}

/** As lenient as in other programs: an unsupported entry matches nothing. */
const unproxiedHosts: Rule<readonly string[]> = {
  parse: (text) => text.split(/[\s,]+/).filter((entry) => entry !== ''),
  allowed:
    'a comma-separated list of hosts, host:port, addresses and CIDR ranges, or * for every host',
};

const httpProxy = defineSetting('HTTP_PROXY', proxyUrl, {
  alias: 'http_proxy',
  summary: 'The proxy for http requests to the provider.',
  details: 'Also read as `http_proxy`. Addresses of this machine never go through a proxy.',
  isSecret: true,
});

export const outboundSettings = {
  httpProxy,
  httpsProxy: defineSetting('HTTPS_PROXY', proxyUrl, {
    alias: 'https_proxy',
    computed: { text: 'HTTP_PROXY', compute: (read) => read(httpProxy) },
    summary: 'The proxy for https requests (CONNECT).',
    details:
      'For requests to the provider, and for the metadata documents of clients. Also read as `https_proxy`. Not together with CIMD_ALLOWED_HOSTS=*.',
    isSecret: true,
  }),
  noProxy: defineSetting('NO_PROXY', unproxiedHosts, {
    alias: 'no_proxy',
    default: [],
    summary: 'Hosts that are reached without the proxy.',
    details:
      '`example.com` is the host and its subdomains, `.example.com` only the subdomains. Also read as `no_proxy`.',
  }),
};
