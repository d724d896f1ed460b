// Whether the gateway can be reached at all, and whether it is one.
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { type Advice, type Finding, type Found, failure, ok, warning } from '../finding.ts';
import type { ProbeAnswer } from '../instruments.ts';
import { describeNetworkFailure, type FailureKind } from '../network-failure.ts';
import { adviseOnLimit, MCP_CALL, readErrorData, readReason } from './read-answer.ts';
import type { Walk } from './walk.ts';

/** Nothing answers: before the first start of a gateway that is as it should be. */
export const REACHABLE = 'gateway.reachable';
/** Something answers, and it is not the MCP endpoint of a gateway. */
const ENDPOINT = 'gateway.endpoint';
const CERTIFICATE = 'gateway.certificate';

const REMEDIES: Readonly<Record<FailureKind, string>> = {
  name: 'check the host name, and that the DNS of this machine knows it.',
  refused: 'start the gateway, or check the port, and the proxy in front of it.',
  timeout: 'check that the gateway runs, and that firewalls let this machine reach it.',
  'certificate-expired': 'renew it, and load it into the proxy that has it.',
  'certificate-name':
    'install a certificate for this name, or give clients the name that the certificate has.',
  certificate:
    'install a certificate that clients trust, with its whole chain. For a certificate authority of your own, set NODE_EXTRA_CA_CERTS=/path/to/ca.pem on this machine and on those of the clients.',
  'no-tls': 'use http:// if this is a gateway on your machine; otherwise put a TLS proxy in front.',
  'tls-only': 'use https://, or check the port.',
  proxy: 'check HTTPS_PROXY and HTTP_PROXY of this machine, or list the host in NO_PROXY.',
  other: 'check that the URL is that of the gateway.',
};

export async function checkReach(walk: Walk): Promise<Found> {
  try {
    const answer = await walk.callWithoutToken();
    return [await judgeAnswer(answer, walk), await checkCertificate(walk)];
  } catch (error) {
    const { kind, text } = describeNetworkFailure(error, walk.endpoint);
    const check = kind.startsWith('certificate') ? CERTIFICATE : REACHABLE;
    return failure(check, { what: text, remedy: REMEDIES[kind] });
  }
}

async function judgeAnswer(answer: ProbeAnswer, walk: Walk): Promise<Finding> {
  const { endpoint } = walk;
  const { status, headers, milliseconds } = answer;
  if (readReason(answer) === 'invalid_host') return explainHost(walk.baseUrl);
  if (headers.get('location') !== null) return explainRedirect(answer, endpoint);
  if (status === 404)
    return failure(ENDPOINT, {
      what: `There is no MCP endpoint at ${endpoint} (404).`,
      ...(await adviseOnPath(answer, walk)),
    });
  if (status === 429)
    return failure(ENDPOINT, {
      what: 'The gateway has received too many requests (429).',
      ...adviseOnLimit(answer, 'MCP'),
    });
  if ([502, 503, 504].includes(status) && answer.json === undefined)
    return failure(REACHABLE, {
      what: `A proxy answers for ${endpoint}, but not the gateway (${status}).`,
      remedy:
        'start the gateway, and check the address to which the proxy leads. If it runs, the proxy may send it nothing because it is not ready: its log, its own /health/ready, or `postern doctor` without a URL where its settings are says why.',
    });
  if (status >= 500)
    return failure(ENDPOINT, {
      what: `${endpoint} answers ${status}.`,
      remedy: "the gateway's log says why.",
    });
  if (!isFromMcp(answer))
    return failure(ENDPOINT, {
      what: `What answers at ${endpoint} is no MCP server: ${status}, ${headers.get('content-type') ?? 'no content'}.`,
      remedy:
        status === 403
          ? 'check the address. If it is right, a firewall or proxy in front refuses the request: let POST requests to /mcp through.'
          : 'check the address, and where the proxy in front of it leads.',
    });
  return ok(REACHABLE, `${endpoint} answers (${milliseconds} ms).`);
}

/** A 401 may be that of a gateway. What else it answers is JSON-RPC, perhaps in a stream. */
const isFromMcp = ({ status, json, headers }: ProbeAnswer): boolean =>
  status === 401 ||
  json?.jsonrpc === '2.0' ||
  (status === 200 && /^text\/event-stream\b/.test(headers.get('content-type') ?? ''));

const explainHost = (baseUrl: string): Finding =>
  failure(ENDPOINT, {
    what: `The gateway does not answer to the name ${new URL(baseUrl).host}.`,
    setting: 'BASE_URL',
    remedy: `set BASE_URL=${baseUrl} on the gateway if this is its public address. If it is set so already, have the proxy in front pass the Host header on unchanged. For a second name: ALLOWED_HOSTS=${new URL(baseUrl).host}`,
  });

/** To another address of the gateway, or to the login page of a proxy. */
function explainRedirect({ location: target, headers }: ProbeAnswer, endpoint: string): Finding {
  const isMoved = target?.pathname.replace(/\/$/, '').endsWith('/mcp') === true;
  return failure(ENDPOINT, {
    what: `${endpoint} redirects to ${target === undefined ? headers.get('location') : target.origin + target.pathname}: clients do not follow that.`,
    remedy: isMoved
      ? `give clients that address, and check it: postern doctor ${target.href}`
      : 'if that is a login page of a proxy in front, let /mcp, /oauth/* and /.well-known/* through without it: clients log in at the gateway.',
  });
}

async function adviseOnPath(answer: ProbeAnswer, walk: Walk): Promise<Advice> {
  const { origin, pathname } = new URL(walk.baseUrl);
  const hasPath = pathname !== '/';
  if (hasPath && (await isAtRoot(walk)))
    return {
      why: `There is one at ${origin}/mcp.`,
      setting: 'BASE_URL',
      remedy: `check that address: postern doctor ${origin}. If BASE_URL has the path ${pathname} by mistake, set BASE_URL=${origin}.`,
    };
  const isGateway = /nothing at this path/.test(String(readErrorData(answer).details));
  const why = 'A gateway got the request, but by another path than /mcp.';
  if (hasPath)
    return {
      ...(isGateway && { why }),
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${walk.baseUrl} on the gateway, and have the proxy in front pass on what comes below ${pathname}/, with this path or without. A host name of its own for the gateway is simpler.`,
    };
  return isGateway
    ? { why, remedy: 'have the proxy in front pass paths on unchanged.' }
    : {
        remedy:
          'check the address: this server is no gateway, or a proxy in front of it leads elsewhere.',
      };
}

/** Whether the host has a gateway without the path, which does not call itself by it. */
async function isAtRoot({ baseUrl, probe }: Walk): Promise<boolean> {
  const answer = await probe(`${new URL(baseUrl).origin}/mcp`, MCP_CALL);
  const challenge = answer.headers.get('www-authenticate') ?? '';
  return answer.status !== 404 && isFromMcp(answer) && !challenge.includes(`"${baseUrl}/`);
}

const EXPIRES_SOON_DAYS = 14;
const MS_PER_DAY = 86_400_000;

/** Of a certificate that is accepted: until when. */
async function checkCertificate({ baseUrl, isProxied, clock }: Walk): Promise<Finding | undefined> {
  const { protocol, hostname, port } = new URL(baseUrl);
  if (protocol !== 'https:' || isProxied(baseUrl)) return undefined;
  const end = await readCertificateEnd(hostname.replace(/^\[|\]$/g, ''), Number(port || 443));
  if (end === undefined) return undefined;
  const days = Math.floor((end - clock.now()) / MS_PER_DAY);
  if (days >= EXPIRES_SOON_DAYS)
    return ok(CERTIFICATE, `The TLS certificate is valid for ${days} more days.`);
  const what = `The TLS certificate expires in ${days} days.`;
  return warning(CERTIFICATE, { what, remedy: 'renew it.' });
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
