// Whether the gateway is ready, and calls itself by the address that was asked.
import { isObject } from '../../../platform/json.ts';
import {
  type Advice,
  type Finding,
  type Found,
  failure,
  ok,
  unknown,
  warning,
} from '../finding.ts';
import type { Walk } from './walk.ts';

const READY_CHECK = 'gateway.ready';
export const STORE_CHECK = `${READY_CHECK}.store`;

const LACKS: Readonly<Record<string, Advice & { readonly what: string }>> = {
  keySet: {
    what: "The gateway never got the provider's key set, so it can check no token.",
    why: 'The provider is down or cannot be reached from the gateway, or its discovery document names another issuer.',
    setting: 'OIDC_ISSUER',
    remedy:
      "start the provider, or correct OIDC_ISSUER; where only a proxy leads out, set HTTPS_PROXY=http://host:port. The gateway's log has the reason, and `postern doctor` without a URL, where the gateway's settings are, finds it.",
  },
  store: {
    what: 'The gateway cannot use its store.',
    setting: 'REDIS_URL',
    remedy:
      'check that Redis runs and can be reached from the gateway (or that DATA_DIR has room).',
  },
  servers: {
    what: 'A required MCP server behind the gateway cannot be reached.',
    setting: 'POSTERN_CONFIG',
    remedy: "start the server; the gateway's log names it.",
  },
};

/** §4.3: what the gateway itself says it lacks. */
export async function checkHealth({ readReadiness, listLacking }: Walk): Promise<Found> {
  const { status, json } = await readReadiness();
  if (!isObject(json?.checks)) {
    return unknown(READY_CHECK, {
      what: 'whether the gateway is ready: /health/ready cannot be read from outside.',
      why: 'Or it is not a Postern gateway: then the settings that are named below are not its own.',
    });
  }
  const lacking = await listLacking();
  if (lacking.length === 0)
    return status === 200
      ? ok(READY_CHECK, `The gateway is ready (version ${String(json.version)}).`)
      : failure(READY_CHECK, 'The gateway is shutting down.');
  return lacking.map((name) =>
    failure(`${READY_CHECK}.${name}`, LACKS[name] ?? `The gateway lacks ${name}.`),
  );
}

const CHALLENGE_CHECK = 'challenge';
/** Where clients are sent to another address, all that follows would be about that one. */
export const BASE_URL_CHECK = 'gateway.base-url';

/** RFC 9728 §5.1: the 401 by which a client learns where to log in. */
export async function checkChallenge(walk: Walk): Promise<Found> {
  const { baseUrl } = walk;
  const { status, headers } = await walk.callWithoutToken();
  if (status === 200 || status === 400)
    return warning(CHALLENGE_CHECK, {
      what: 'The gateway answers without a token: it lets in everybody.',
      setting: 'AUTH_REQUIRED',
      remedy: 'remove AUTH_REQUIRED=false, unless nobody else can reach this address.',
    });
  if (status !== 401) return [];
  const url = await walk.findChallenge();
  if (url === undefined)
    return explainMissing(headers.get('www-authenticate'), await walk.findResourceMetadata());
  if (isBelow(url, baseUrl))
    return ok(
      CHALLENGE_CHECK,
      'Without a token it answers 401, and says where the login is described.',
    );
  return failure(BASE_URL_CHECK, {
    what: `The gateway calls itself ${nameBase(url)}, not ${baseUrl}.`,
    why: `Clients are sent to ${url}, and compare the addresses.`,
    setting: 'BASE_URL',
    remedy: `set BASE_URL=${baseUrl} on the gateway, or give clients ${nameBase(url)}/mcp.`,
  });
}

/** Most clients then look for the metadata at the usual place. */
function explainMissing(header: string | null, found: string | undefined): Finding {
  const what = 'The 401 has no WWW-Authenticate header with resource_metadata.';
  const has = `It has: ${header ?? 'no such header'}.`;
  const remedy =
    'let the proxy in front pass the WWW-Authenticate header on, and check that this is the gateway.';
  return found === undefined
    ? failure(CHALLENGE_CHECK, { what, why: `${has} Clients find the login by it.`, remedy })
    : warning(CHALLENGE_CHECK, {
        what,

        why: `${has} Older clients find no login without it; others find ${found}.`,
        remedy,
      });
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

const isBelow = (url: string, baseUrl: string): boolean =>
  url.startsWith(`${baseUrl}${WELL_KNOWN}`);

const nameBase = (url: string): string => url.split(WELL_KNOWN)[0] ?? url;
