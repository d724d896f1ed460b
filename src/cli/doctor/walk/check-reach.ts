// Whether the gateway can be reached at all, and whether it is one.
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { type Finding, failure, ok, warning } from '../finding.ts';
import { describeNetworkFailure, type FailureKind } from '../network/describe-failure.ts';
import type { Answer } from '../network/probe.ts';
import { isJsonObject, readReason } from './read-reason.ts';
import type { Walk } from './walk.ts';

const CHECK = 'gateway.reachable';

const REMEDIES: Readonly<Record<FailureKind, string>> = {
  name: 'check the host name, and that the DNS of this machine knows it.',
  refused: 'start the gateway, or check the port, and the proxy in front of it.',
  timeout: 'check that the gateway runs, and that firewalls let this machine reach it.',
  certificate:
    'install a certificate for this name that clients trust, with its whole chain. For a certificate authority of your own, set NODE_EXTRA_CA_CERTS on this machine and on those of the clients.',
  'no-tls': 'use http:// if this is a gateway on your machine; otherwise put a TLS proxy in front.',
  proxy: 'check HTTPS_PROXY and HTTP_PROXY of this machine, or list the host in NO_PROXY.',
  other: 'check that the URL is that of the gateway.',
};

export async function checkReach(walk: Walk): Promise<readonly Finding[]> {
  try {
    const answer = await walk.callWithoutToken();
    return [judgeAnswer(answer, walk), ...(await checkCertificate(walk))];
  } catch (error) {
    const { kind, text } = describeNetworkFailure(error, walk.endpoint);
    return [failure(CHECK, text, { remedy: REMEDIES[kind] })];
  }
}

function judgeAnswer(answer: Answer, { baseUrl, endpoint }: Walk): Finding {
  const { status, headers, milliseconds } = answer;
  const reason = readReason(answer);
  const location = headers.get('location');
  if (reason === 'invalid_host')
    return failure(CHECK, `The gateway does not answer to the name ${new URL(baseUrl).host}.`, {
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${baseUrl} on the gateway if this is its public address; otherwise add the host to ALLOWED_HOSTS.`,
    });
  if (location !== null)
    return failure(CHECK, `${endpoint} redirects to ${location}: clients do not follow that.`, {
      remedy: 'give clients the address that it leads to.',
    });
  if (status === 404)
    return failure(CHECK, `There is no MCP endpoint at ${endpoint} (404).`, adviseOnPath(baseUrl));
  if (status === 429)
    return failure(CHECK, 'The gateway has received too many requests from this address (429).', {
      setting: 'MCP_RATE_LIMIT_MAX',
      remedy: 'wait a minute and try again.',
    });
  if ([502, 503, 504].includes(status) && !isJsonObject(answer))
    return failure(CHECK, `A proxy answers for ${endpoint}, but not the gateway (${status}).`, {
      remedy: 'start the gateway, and check the address to which the proxy leads.',
    });
  if (status >= 500)
    return failure(CHECK, `${endpoint} answers ${status}.`, {
      remedy: "the gateway's log says why.",
    });
  return ok(CHECK, `${endpoint} answers (${milliseconds} ms).`);
}

const adviseOnPath = (baseUrl: string) =>
  new URL(baseUrl).pathname === '/'
    ? {
        remedy:
          'check the address: this server is no gateway, or a proxy in front of it leads elsewhere.',
      }
    : {
        why: 'The gateway serves its paths from /, so a proxy in front has to remove the path of BASE_URL.',
        setting: 'BASE_URL',
        remedy:
          'have the proxy remove that path before it passes requests on, or give the gateway a host name of its own (simpler).',
      };

const EXPIRES_SOON_DAYS = 14;
const MS_PER_DAY = 86_400_000;

/** Of a certificate that is accepted: until when. */
async function checkCertificate({ baseUrl, isProxied, clock }: Walk): Promise<readonly Finding[]> {
  const { protocol, hostname, port } = new URL(baseUrl);
  if (protocol !== 'https:' || isProxied(baseUrl)) return [];
  const end = await readCertificateEnd(hostname.replace(/^\[|\]$/g, ''), Number(port || 443));
  if (end === undefined) return [];
  const days = Math.floor((end - clock.now()) / MS_PER_DAY);
  return [
    days < EXPIRES_SOON_DAYS
      ? warning('gateway.certificate', `The TLS certificate expires in ${days} days.`, {
          remedy: 'renew it.',
        })
      : ok('gateway.certificate', `The TLS certificate is valid for ${days} more days.`),
  ];
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
