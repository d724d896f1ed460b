// RFC 9728 §5.1: the 401 by which a client learns where to log in.
import { type Finding, failure, ok, warning } from '../finding.ts';
import type { Walk } from './walk.ts';

const CHECK = 'challenge';

export async function checkChallenge(walk: Walk): Promise<readonly Finding[]> {
  const { baseUrl } = walk;
  const { status, headers } = await walk.callWithoutToken();
  if (status === 200 || status === 400)
    return [
      warning(CHECK, 'The gateway answers without a token: it lets in everybody.', {
        setting: 'AUTH_REQUIRED',
        remedy: 'remove AUTH_REQUIRED=false, unless nobody else can reach this address.',
      }),
    ];
  if (status !== 401) return [];
  const url = await walk.findChallenge();
  if (url === undefined)
    return [
      failure(CHECK, 'The 401 has no WWW-Authenticate header with resource_metadata.', {
        why: `It has: ${headers.get('www-authenticate') ?? 'no such header'}. Clients find the log-in by it.`,
        remedy: 'let the proxy in front pass this header on, and check that this is the gateway.',
      }),
    ];
  if (isBelow(url, baseUrl))
    return [ok(CHECK, 'Without a token it answers 401, and says where the log-in is described.')];
  return [
    failure('gateway.base-url', `The gateway calls itself ${nameBase(url)}, not ${baseUrl}.`, {
      why: `Clients are sent to ${url}, and compare the addresses.`,
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${baseUrl} on the gateway, or give clients ${nameBase(url)}/mcp.`,
    }),
  ];
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

const isBelow = (url: string, baseUrl: string): boolean =>
  url.startsWith(`${baseUrl}${WELL_KNOWN}`);

const nameBase = (url: string): string => url.split(WELL_KNOWN)[0] ?? url;
