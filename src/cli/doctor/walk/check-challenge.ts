// RFC 9728 §5.1: the 401 by which a client learns where to log in.
import { type Finding, failure, ok, warning } from '../finding.ts';
import type { Walk } from './walk.ts';

const CHECK = 'challenge';
/** Where clients are sent to another address, all that follows would be about that one. */
export const BASE_URL_CHECK = 'gateway.base-url';

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
    return [explainMissing(headers.get('www-authenticate'), await walk.findResourceMetadata())];
  if (isBelow(url, baseUrl))
    return [ok(CHECK, 'Without a token it answers 401, and says where the login is described.')];
  return [
    failure(BASE_URL_CHECK, `The gateway calls itself ${nameBase(url)}, not ${baseUrl}.`, {
      why: `Clients are sent to ${url}, and compare the addresses.`,
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${baseUrl} on the gateway, or give clients ${nameBase(url)}/mcp.`,
    }),
  ];
}

/** Most clients then look for the metadata at the usual place. */
function explainMissing(header: string | null, found: string | undefined): Finding {
  const what = 'The 401 has no WWW-Authenticate header with resource_metadata.';
  const has = `It has: ${header ?? 'no such header'}.`;
  const remedy =
    'let the proxy in front pass the WWW-Authenticate header on, and check that this is the gateway.';
  return found === undefined
    ? failure(CHECK, what, { why: `${has} Clients find the login by it.`, remedy })
    : warning(CHECK, what, {
        why: `${has} Older clients find no login without it; others find ${found}.`,
        remedy,
      });
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

const isBelow = (url: string, baseUrl: string): boolean =>
  url.startsWith(`${baseUrl}${WELL_KNOWN}`);

const nameBase = (url: string): string => url.split(WELL_KNOWN)[0] ?? url;
