// Checks that the gateway can be reached: that there is a response, and that it is from a gateway.

import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { catalogue } from '../../errors/catalogue.ts';
import { isOnThisMachine } from '../../platform/address.ts';
import { isObject } from '../../platform/json.ts';
import {
  type Advice,
  defineCheck,
  type Finding,
  failure,
  ok,
  unknown,
  warning,
} from './finding.ts';
import { describeNetworkFailure, type FailureKind, type ProbeAnswer } from './instruments.ts';
import { adviseOnLimit, MCP_CALL, readErrorData, readReason } from './log-in.ts';
import type { Walk } from './walk.ts';

/** No response: normal before the first start of a gateway. */
export const REACHABLE = 'gateway.reachable';
/** There is a response, but not from the MCP endpoint of a gateway. */
const ENDPOINT = 'gateway.endpoint';
const CERTIFICATE = 'gateway.certificate';

const REACH_REMEDIES: Readonly<Record<FailureKind, string>> = {
  name: 'check the host name, and that the DNS of this machine knows it.',
  refused: 'start the gateway, or check the port, and the proxy in front of it.',
  timeout: 'check that the gateway runs, and that firewalls let this machine reach it.',
  'certificate-expired': 'renew it, and load it into the proxy that uses it.',
  'certificate-name':
    'install a certificate for this name, or give clients the name in the certificate.',
  certificate:
    'install a certificate that clients trust, with its whole chain. For a certificate authority of your own, set NODE_EXTRA_CA_CERTS=/path/to/ca.pem on this machine and on those of the clients.',
  'no-tls': 'use http:// if this is a gateway on your machine; otherwise put a TLS proxy in front.',
  'tls-only': 'use https://, or check the port.',
  proxy: 'check HTTPS_PROXY and HTTP_PROXY of this machine, or list the host in NO_PROXY.',
  other: 'check that the URL is that of the gateway.',
};

export const reachCheck = defineCheck({
  section: 'Gateway',
  async run(walk: Walk) {
    try {
      const answer = await walk.callWithoutToken();
      return [await judgeAnswer(answer, walk), await checkCertificate(walk)];
    } catch (error) {
      const { kind, text } = describeNetworkFailure(error, walk.endpoint);
      const check = kind.startsWith('certificate') ? CERTIFICATE : REACHABLE;
      return failure(check, text, { remedy: REACH_REMEDIES[kind] });
    }
  },
});

async function judgeAnswer(answer: ProbeAnswer, walk: Walk): Promise<Finding> {
  const { endpoint, baseUrl } = walk;
  const { status, headers, milliseconds, location: target } = answer;
  const refuse = (what: string, advice: Advice) => failure(ENDPOINT, what, advice);
  const { host } = new URL(baseUrl);
  if (readReason(answer) === 'invalid_host')
    return refuse(`The gateway does not accept the host name ${host}.`, {
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${baseUrl} on the gateway if this is its public address. If it is already set, have the proxy in front pass on the Host header unchanged. For a second name: ALLOWED_HOSTS=${host}`,
    });
  if (headers.get('location') !== null) {
    // Either to a different address of the gateway, or to the login page of a proxy.
    const isMoved = target?.pathname.replace(/\/$/, '').endsWith('/mcp') === true;
    return refuse(
      `${endpoint} redirects to ${target === undefined ? headers.get('location') : target.origin + target.pathname}: clients do not follow that.`,
      {
        remedy: isMoved
          ? `give clients that address, and check it: postern doctor ${target.href}`
          : 'if that is a login page of a proxy in front, exempt /mcp, /oauth/* and /.well-known/* from it: clients log in at the gateway.',
      },
    );
  }
  if (status === 404)
    return refuse(
      `There is no MCP endpoint at ${endpoint} (404).`,
      await adviseOnPath(answer, walk),
    );
  if (status === 429)
    return refuse(
      'The gateway has received too many requests (429).',
      adviseOnLimit(answer, 'MCP'),
    );
  if ([502, 503, 504].includes(status) && answer.json === undefined)
    return failure(REACHABLE, `A proxy answers for ${endpoint}, but not the gateway (${status}).`, {
      remedy:
        'start the gateway, and check the address that the proxy forwards to. If it runs, the proxy may send it no requests because it is not ready: its log, its own /health/ready, or `postern doctor` without a URL where its settings are says why.',
    });
  if (status >= 500)
    return refuse(`${endpoint} answers ${status}.`, { remedy: "see the gateway's log." });
  if (!isFromMcp(answer))
    return refuse(
      `The server at ${endpoint} is not an MCP server: ${status}, ${headers.get('content-type') ?? 'no content'}.`,
      {
        remedy:
          status === 403
            ? 'check the address. If it is right, a firewall or proxy in front refuses the request: let POST requests to /mcp through.'
            : 'check the address, and where the proxy in front of it forwards to.',
      },
    );
  return ok(REACHABLE, `${endpoint} answers (${milliseconds} ms).`);
}

/** A 401 may be from a gateway. Its other responses are JSON-RPC, possibly in a stream. */
const isFromMcp = ({ status, json, headers }: ProbeAnswer) =>
  status === 401 ||
  json?.jsonrpc === '2.0' ||
  (status === 200 && /^text\/event-stream\b/.test(headers.get('content-type') ?? ''));

async function adviseOnPath(answer: ProbeAnswer, walk: Walk): Promise<Advice> {
  const { origin, pathname } = new URL(walk.baseUrl);
  const hasPath = pathname !== '/';
  if (hasPath && (await isAtRoot(walk)))
    return {
      why: `There is one at ${origin}/mcp.`,
      setting: 'BASE_URL',
      remedy: `check that address: postern doctor ${origin}. If BASE_URL has the path ${pathname} by mistake, set BASE_URL=${origin}.`,
    };
  const isGateway = readErrorData(answer).details === catalogue.not_found.details;
  const why = 'A gateway got the request, but with another path than /mcp.';
  if (hasPath)
    return {
      why: isGateway ? why : undefined,
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${walk.baseUrl} on the gateway, and have the proxy in front pass on requests below ${pathname}/, with or without this path. A separate host name for the gateway is simpler.`,
    };
  return isGateway
    ? { why, remedy: 'have the proxy in front pass on paths unchanged.' }
    : {
        remedy:
          'check the address: this server is not a gateway, or a proxy in front of it forwards elsewhere.',
      };
}

/** True if there is a gateway at the host's root, whose own address has no such path. */
async function isAtRoot({ baseUrl, probe }: Walk) {
  const answer = await probe(`${new URL(baseUrl).origin}/mcp`, MCP_CALL);
  const challenge = answer.headers.get('www-authenticate') ?? '';
  return answer.status !== 404 && isFromMcp(answer) && !challenge.includes(`"${baseUrl}/`);
}

const EXPIRES_SOON_DAYS = 14;
const MS_PER_DAY = 86_400_000;

/** Checks the expiry of an accepted certificate. */
async function checkCertificate({ baseUrl, isProxied, clock }: Walk): Promise<Finding | undefined> {
  const { protocol, hostname, port } = new URL(baseUrl);
  if (protocol !== 'https:' || isProxied(baseUrl)) return undefined;
  const end = await readCertificateEnd(hostname.replace(/^\[|\]$/g, ''), Number(port || 443));
  if (end === undefined) return undefined;
  const days = Math.floor((end - clock.now()) / MS_PER_DAY);
  if (days >= EXPIRES_SOON_DAYS)
    return ok(CERTIFICATE, `The TLS certificate is valid for ${days} more days.`);
  const what = `The TLS certificate expires in ${days} days.`;
  return warning(CERTIFICATE, what, { remedy: 'renew it.' });
}

const TIMEOUT_MS = 5000;

const readCertificateEnd = (host: string, port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const socket: TLSSocket = connect(
      { host, port, ...(isIP(host) === 0 && { servername: host }), timeout: TIMEOUT_MS },
      () => {
        const end = Date.parse(socket.getPeerCertificate().valid_to);
        socket.destroy();
        resolve(Number.isNaN(end) ? undefined : end);
      },
    );
    const giveUp = () => {
      socket.destroy();
      resolve(undefined);
    };
    socket.on('error', giveUp).on('timeout', giveUp);
  });

// Checks that the gateway is ready, and that it uses the requested address for itself.

const READY_CHECK = 'gateway.ready';
export const STORE_CHECK = 'gateway.ready.store';

const LACKS: Readonly<Record<string, readonly [what: string, advice: Advice]>> = {
  keySet: [
    "The gateway never got the provider's key set: it cannot check the provider's tokens, and nobody can log in.",
    {
      why: 'The provider is down or cannot be reached from the gateway, or its discovery document names a different issuer.',
      setting: 'OIDC_ISSUER',
      remedy:
        "start the provider, or correct OIDC_ISSUER; if internet access requires a proxy, set HTTPS_PROXY=http://host:port. The gateway's log has the reason, and `postern doctor` without a URL, where the gateway's settings are, finds it.",
    },
  ],
  store: [
    'The gateway cannot use its store.',
    {
      setting: 'REDIS_URL',
      remedy:
        'check that Redis runs and can be reached from the gateway (or that there is space in DATA_DIR).',
    },
  ],
  servers: [
    'A required MCP server behind the gateway cannot be reached.',
    { setting: 'POSTERN_CONFIG', remedy: "start the server; the gateway's log names it." },
  ],
};

/** §4.3: the dependencies that the gateway reports as missing. */
export const healthCheck = defineCheck({
  section: 'Gateway',
  async run({ readReadiness, listLacking }: Walk) {
    const { status, json } = await readReadiness();
    if (!isObject(json?.checks))
      return unknown(
        READY_CHECK,
        'whether the gateway is ready: /health/ready cannot be read from outside.',
        {
          why: 'Or it is not a Postern gateway, in which case the settings named below do not apply to it.',
        },
      );
    const lacking = await listLacking();
    if (lacking.length === 0)
      return status === 200
        ? ok(READY_CHECK, `The gateway is ready (version ${String(json.version)}).`)
        : failure(READY_CHECK, 'The gateway is shutting down.');
    return lacking.map((name) => {
      const [what, advice] = LACKS[name] ?? [`The gateway lacks ${name}.`];
      return failure(`${READY_CHECK}.${name}`, what, advice);
    });
  },
});

/** §4.11: the metrics have no authentication. On this machine alone, nobody else reads them. */
export const metricsCheck = defineCheck({
  section: 'Gateway',
  async run({ baseUrl, probe }: Walk) {
    if (isOnThisMachine(new URL(baseUrl).hostname)) return [];
    const { status, headers } = await probe(`${baseUrl}/metrics`);
    const isMetrics = headers.get('content-type')?.startsWith('application/openmetrics-text');
    if (status !== 200 || !isMetrics) return [];
    return warning('gateway.metrics', `${baseUrl}/metrics can be read by everyone.`, {
      why: 'The metrics name servers and tools, and count users, logins and refusals.',
      setting: 'METRICS_PORT',
      remedy:
        'set METRICS_PORT=9464 on the gateway, and have Prometheus scrape that port; or block /metrics in the proxy in front.',
    });
  },
});

const CHALLENGE_CHECK = 'challenge';
/** If clients are sent to a different address, all later checks would be about that one. */
export const BASE_URL_CHECK = 'gateway.base-url';

/** RFC 9728 §5.1: the 401 that tells a client where to log in. */
export const challengeCheck = defineCheck({
  section: 'Gateway',
  async run(walk: Walk) {
    const { baseUrl } = walk;
    const { status, headers } = await walk.callWithoutToken();
    if (status === 200 || status === 400)
      return warning(
        CHALLENGE_CHECK,
        'The gateway answers without a token: it accepts all callers.',
        {
          setting: 'AUTH_REQUIRED',
          remedy: 'remove AUTH_REQUIRED=false, unless no one else can reach this address.',
        },
      );
    if (status !== 401) return [];
    const url = await walk.findChallenge();
    if (url === undefined) {
      // Most clients then look for the metadata at the standard location.
      const found = await walk.findResourceMetadata();
      const meaning =
        found === undefined
          ? 'Clients need it to discover where to log in.'
          : `Older clients cannot discover where to log in without it; others find ${found}.`;
      return (found === undefined ? failure : warning)(
        CHALLENGE_CHECK,
        'The 401 has no WWW-Authenticate header with resource_metadata.',
        {
          why: `It has: ${headers.get('www-authenticate') ?? 'no such header'}. ${meaning}`,
          remedy:
            'have the proxy in front pass on the WWW-Authenticate header, and check that this is the gateway.',
        },
      );
    }
    if (url.startsWith(`${baseUrl}${WELL_KNOWN}`))
      return ok(CHALLENGE_CHECK, 'Without a token it answers 401, and names its metadata.');
    const [named = url] = url.split(WELL_KNOWN);
    return failure(BASE_URL_CHECK, `The gateway calls itself ${named}, not ${baseUrl}.`, {
      why: `Clients are sent to ${url}, and compare the addresses.`,
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${baseUrl} on the gateway, or give clients ${named}/mcp.`,
    });
  },
});

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
