// Walks through a gateway as a client that only knows its URL: requests, and the documents it finds. Includes the checks of
// metadata and CORS.

import { setTimeout as pause } from 'node:timers/promises';
import { describeIssuerMismatch } from '../../http/oauth-client/provider-metadata.ts';
import { UNKNOWN_TOKEN } from '../../logins/auth/own-tokens.ts';
import { isOnThisMachine } from '../../platform/address.ts';
import type { FetchResponse } from '../../platform/fetch-with-limits.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { defineCheck, failure, ok, warning } from './finding.ts';
import type { Instruments, ProbeAnswer } from './instruments.ts';
import {
  LOOPBACK_REDIRECT_URI,
  logInAsClient,
  MCP_CALL,
  readErrorData,
  registerClient,
} from './log-in.ts';

/** Each part is requested once, by the first check that needs it. Failed requests throw a FetchError. */
export type Walk = ReturnType<typeof createWalk>;

/**
 * `baseUrl` has no trailing slash and no `/mcp`. `refusesEditors`: the local settings, if any, do not let editors register a
 * private-use scheme.
 */
export function createWalk(baseUrl: string, instruments: Instruments, refusesEditors = false) {
  const { probe } = instruments;
  const endpoint = `${baseUrl}/mcp`;

  const callWithoutToken = memoize(() => probe(endpoint, MCP_CALL));

  /** True if the gateway issues its own tokens (§5.11), judging by its response to a fake token. */
  const issuesOwnTokens = memoize(async () => {
    const headers = { ...MCP_CALL.headers, Authorization: 'Bearer pst_postern-doctor' };
    const answer = await probe(endpoint, { ...MCP_CALL, headers });
    return readErrorData(answer).details === UNKNOWN_TOKEN;
  });

  /** A gateway that has just started may still be fetching the provider's keys: retries for one second. */
  const readReadiness = memoize(async () => {
    let answer = await probe(`${baseUrl}/health/ready`);
    for (let again = 0; answer.status === 503 && again < 5; again += 1) {
      await pause(200);
      answer = await probe(`${baseUrl}/health/ready`);
    }
    return answer;
  });

  /** Dependencies that the gateway reports as missing (§4.3): `keySet`, `store`, `servers`. */
  const listLacking = async () => {
    const { checks } = (await readReadiness()).json ?? {};
    const entries = isObject(checks) ? Object.entries(checks) : [];
    return entries.flatMap(([name, check]) =>
      isObject(check) && check.status !== 'ok' ? [name] : [],
    );
  };

  /** RFC 9728 §5.1: the URL in the challenge; undefined without one. */
  const findChallenge = memoize(async () => {
    const header = (await callWithoutToken()).headers.get('www-authenticate') ?? '';
    return /resource_metadata="([^"]+)"/.exec(header)?.[1];
  });

  /** The URL in the challenge, or else the standard location where clients look (§3.1); undefined if there is no document. */
  const findResourceMetadata = memoize(async () => {
    const url = await findChallenge();
    if (url !== undefined || (await callWithoutToken()).status !== 401) return url;
    const answers = await Promise.all(listResourceMetadataUrls(endpoint).map((one) => probe(one)));
    return answers.find(isDocument)?.url;
  });

  /** RFC 9728; undefined if it cannot be read. */
  const readResourceMetadata = memoize(async () => {
    const url = await findResourceMetadata();
    return url && URL.canParse(url) ? (await probe(url)).json : undefined;
  });

  /** RFC 8414: all locations where clients look, in their order. */
  const readServerMetadata = memoize(async () => {
    const servers = (await readResourceMetadata())?.authorization_servers;
    const issuer = Array.isArray(servers)
      ? servers.find((one: unknown) => typeof one === 'string')
      : undefined;
    const { origin, pathname } = new URL(issuer ?? baseUrl);
    const path = pathname.replace(/\/$/, '');
    // §3.1 and §5, in the order of the MCP specification: the issuer's path follows the well-known path, or else precedes it.
    const urls = [
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
    ];
    return Promise.all(urls.map((url) => probe(url)));
  });

  /** The first document that exists. */
  const readServerDocument = async () => (await readServerMetadata()).find(isDocument)?.json;

  const readEndpoint = async (name: string) => {
    const url = (await readServerDocument())?.[name];
    return typeof url === 'string' && URL.canParse(url) ? url : undefined;
  };

  /** Undefined without a registration endpoint. */
  const register = memoize(async () => {
    const url = await readEndpoint('registration_endpoint');
    return url === undefined ? undefined : registerClient(url, probe, refusesEditors);
  });

  /** The client that doctor registered, or else the default client of every gateway. */
  const findClient = memoize(async () => {
    const registration = await register();
    if (registration?.kind === 'registered')
      return { clientId: registration.clientId, redirectUri: LOOPBACK_REDIRECT_URI };
    const { login } = (await probe(`${baseUrl}/site.json`)).json ?? {};
    const { clientId, redirectUri } = isObject(login) ? login : {};
    return typeof clientId === 'string' && typeof redirectUri === 'string'
      ? { clientId, redirectUri }
      : undefined;
  });

  const logIn = memoize(async () => {
    const [url, client] = await Promise.all([readEndpoint('authorization_endpoint'), findClient()]);
    if (url === undefined || client === undefined) return undefined;
    const mayHaveReplicas = !isOnThisMachine(new URL(baseUrl).hostname);
    return logInAsClient({ url, ...client, resource: endpoint, mayHaveReplicas, probe });
  });

  return {
    ...instruments,
    baseUrl,
    endpoint,
    callWithoutToken,
    issuesOwnTokens,
    readReadiness,
    listLacking,
    findChallenge,
    findResourceMetadata,
    readResourceMetadata,
    readServerMetadata,
    readServerDocument,
    register,
    findClient,
    logIn,
  };
}

/** RFC 9728 §3.1, with and without the path of the resource. */
function listResourceMetadataUrls(endpoint: string) {
  const { origin, pathname } = new URL(endpoint);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  return [`${wellKnown}${pathname}`, wellKnown];
}

/** Single flight: runs `load` at the first call, and shares its outcome. */
function memoize<Value>(load: () => Promise<Value>) {
  let loading: Promise<Value> | undefined;
  return () => {
    loading ??= load();
    return loading;
  };
}

const isDocument = ({ status, json }: ProbeAnswer) => status === 200 && json !== undefined;

// Checks metadata of the gateway (RFC 9728) and of the authorization server (RFC 8414) as strict clients do.

const SERVER_CHECK = 'server-metadata';

export const serverMetadataCheck = defineCheck({
  section: 'Metadata',
  async run(walk: Walk) {
    if ((await walk.findResourceMetadata()) === undefined) return [];
    const found = await walk.readServerMetadata();
    const document = await walk.readServerDocument();
    if (document === undefined)
      return explainMissing(found, walk.baseUrl, (await walk.listLacking()).includes('keySet'));
    const servers = (await walk.readResourceMetadata())?.authorization_servers;
    const expected = (isStringArray(servers) ? servers[0] : undefined) ?? walk.baseUrl;
    const { issuer } = document;
    const lacking = Object.keys(MEMBERS).filter((name) => !MEMBERS[name]?.(document[name]));
    const missing = found.filter((answer) => !isDocument(answer));
    return [
      // RFC 8414 §3.3. In proxy mode the document names the provider by default.
      issuer === expected
        ? ok(
            'server-metadata.issuer',
            `The authorization server's issuer is ${expected}, as clients expect.`,
          )
        : warning(
            'server-metadata.issuer',
            `${describeIssuerMismatch('issuer of the metadata', issuer, expected)} (RFC 8414 §3.3).`,
            {
              why: 'Clients that compare them refuse to log in: the MCP SDK 2.x, oauth4webapi, the Go SDK.',
              setting: 'OAUTH_MODE, OAUTH_METADATA_ISSUER',
              remedy: 'set OAUTH_MODE=broker, or in proxy mode OAUTH_METADATA_ISSUER=self.',
            },
          ),
      lacking.length === 0
        ? ok(
            'server-metadata.members',
            'The metadata has everything that clients need, including PKCE with S256.',
          )
        : failure(
            'server-metadata.members',
            `The metadata lacks ${lacking.join(', ')}, or has an invalid value there.`,
            {
              remedy: 'check that no proxy in front changes the document.',
            },
          ),
      // A client tries one or two of these locations, not all.
      missing.length > 0 &&
        warning(
          'server-metadata.places',
          `There is no metadata at ${missing.map(describePlace).join(' and ')}.`,
          {
            why: 'Some clients look only there.',
            ...adviseOnWellKnown(walk.baseUrl),
          },
        ),
    ];
  },
});

const describePlace = ({ url, status }: ProbeAnswer) => `${url} (${status})`;

/** `lacksKeys`: a previous finding says that the gateway cannot reach the provider. */
function explainMissing(found: readonly ProbeAnswer[], baseUrl: string, lacksKeys: boolean) {
  const failed = found.find(({ status }) => status >= 500);
  const said = failed?.json?.error_description;
  if (failed !== undefined)
    return failure(
      SERVER_CHECK,
      `The metadata of the authorization server cannot be read: ${failed.status}.`,
      {
        why: `The gateway says: ${typeof said === 'string' ? said : 'nothing more'}`,
        ...(!lacksKeys && {
          setting: 'OIDC_ISSUER',
          remedy:
            "check that the provider runs, that the gateway can reach it (HTTPS_PROXY=http://host:port if internet access requires a proxy), and that OIDC_ISSUER is exactly its issuer. The gateway's log has the reason.",
        }),
      },
    );
  return failure(
    SERVER_CHECK,
    `There is no metadata of the authorization server where clients look: ${found.map(describePlace).join(', ')}.`,
    adviseOnWellKnown(baseUrl),
  );
}

const isUrl = (value: unknown) => typeof value === 'string' && URL.canParse(value);
const lists = (wanted: string) => (value: unknown) =>
  isStringArray(value) && value.includes(wanted);

/** Members of the document that clients need, and a test for each value. */
const MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  authorization_endpoint: isUrl,
  token_endpoint: isUrl,
  jwks_uri: isUrl,
  code_challenge_methods_supported: lists('S256'),
  response_types_supported: lists('code'),
};

const RESOURCE_CHECK = 'resource-metadata';

/** RFC 9728: the document that names the authorization server, as strict clients read it. */
export const resourceMetadataCheck = defineCheck({
  section: 'Metadata',
  async run(walk: Walk) {
    const url = await walk.findResourceMetadata();
    if (url === undefined) return [];
    const document = await walk.readResourceMetadata();
    if (document === undefined)
      return failure(RESOURCE_CHECK, `The 401 leads to ${url}, which cannot be read.`, {
        remedy: 'have the proxy in front pass on /.well-known/* to the gateway.',
      });
    // Clients that ignore the challenge derive the location from the endpoint (RFC 9728 §3.1).
    const others = listResourceMetadataUrls(walk.endpoint).filter((one) => one !== url);
    const answers = await Promise.all(others.map((one) => walk.probe(one)));
    const missing = answers.filter((answer) => !isDocument(answer));
    return [
      judgeDocument(document, walk, url),
      missing.length > 0 &&
        warning(
          'resource-metadata.derived',
          `There is no resource metadata at ${missing.map((one) => one.url).join(' and ')} (${missing[0]?.status}).`,
          {
            why: 'Clients that do not read the WWW-Authenticate header look for it there.',
            ...adviseOnWellKnown(walk.baseUrl),
          },
        ),
    ];
  },
});

function judgeDocument(
  { resource, authorization_servers: servers }: JsonObject,
  { endpoint, baseUrl }: Walk,
  url: string,
) {
  if (!isStringArray(servers) || servers.length === 0)
    return failure(RESOURCE_CHECK, `${url} names no authorization server.`);
  if (resource === endpoint)
    return ok(RESOURCE_CHECK, 'The resource metadata names exactly this URL (RFC 9728 §3.3).');
  if (resource === baseUrl || resource === `${baseUrl}/`)
    return warning(
      RESOURCE_CHECK,
      `The resource metadata names ${quote(resource)}, and strict clients compare it with ${endpoint}.`,
      {
        setting: 'OAUTH_MODE',
        remedy: 'OAUTH_MODE=broker names the URL that was called.',
      },
    );
  return failure(
    RESOURCE_CHECK,
    `The resource metadata is about ${quote(resource)}, not ${endpoint}.`,
    {
      why: 'Clients refuse it (RFC 9728 §3.3).',
      setting: 'BASE_URL',
      remedy: `set BASE_URL=${baseUrl} on the gateway.`,
    },
  );
}

/** Well-known paths begin at the host's root: with a path in BASE_URL they are not below it. */
const adviseOnWellKnown = (baseUrl: string) =>
  new URL(baseUrl).pathname === '/'
    ? { remedy: 'have the proxy in front pass on /.well-known/* to the gateway.' }
    : {
        setting: 'BASE_URL',
        remedy:
          'BASE_URL has a path, and well-known addresses begin at the host. Have the proxy pass on requests for these addresses to the gateway, too, or give the gateway a separate host name.',
      };

// The preflight request that a browser sends before a page may call /mcp (Fetch §3.2).

const NEEDED_HEADERS = ['authorization', 'content-type', 'mcp-protocol-version', 'mcp-session-id'];
const READ_HEADERS = ['www-authenticate', 'mcp-session-id'];

/** The origin of the Inspector, and of most browser clients on a developer's machine. */
const LOCAL_ORIGIN = 'http://localhost:6274';

export const corsCheck = defineCheck({
  section: 'Browser clients',
  async run(walk: Walk) {
    const own = new URL(walk.baseUrl).origin;
    const problems = [own, LOCAL_ORIGIN].map((origin) => findProblem(walk, origin));
    const [ownProblem, localProblem] = await Promise.all(problems);
    return [
      ownProblem === undefined
        ? ok('cors', `A page at ${own} may call it, with a token, from a browser.`)
        : failure('cors', `A browser would not let a page at ${own} call it: ${ownProblem}.`, {
            setting: 'BASE_URL',
            remedy: `check that it is BASE_URL=${walk.baseUrl}, and that the proxy in front passes on OPTIONS requests and Access-Control-* headers.`,
          }),
      localProblem === undefined
        ? ok('cors.local', `So may a page at ${LOCAL_ORIGIN} (the Inspector).`)
        : // A public gateway need not accept pages that run on its users' machines.
          (isOnThisMachine(new URL(own).hostname) ? warning : ok)(
            'cors.local',
            `A page at ${LOCAL_ORIGIN} (the Inspector) may not: ${localProblem}.`,
            {
              why: 'Programs that are not web pages do not need it.',
              setting: 'ALLOWED_ORIGINS',
              remedy: `if your users have browser clients, list their origins: ALLOWED_ORIGINS=${LOCAL_ORIGIN}`,
            },
          ),
    ];
  },
});

/** Undefined if a browser would allow the call. */
async function findProblem({ endpoint, probe }: Walk, origin: string) {
  const { status, headers } = await probe(endpoint, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': NEEDED_HEADERS.join(','),
    },
  });
  if (status < 200 || status > 299) return `the preflight is answered ${status}`;
  const allowed = headers.get('access-control-allow-origin');
  if (allowed !== origin && allowed !== '*')
    return `Access-Control-Allow-Origin is ${allowed ?? 'missing'}`;
  const lack =
    describeLack(headers, 'Access-Control-Allow-Headers', NEEDED_HEADERS) ??
    describeLack(headers, 'Access-Control-Allow-Methods', ['POST']);
  if (lack !== undefined) return lack;
  // The page must be able to read these headers of the 401, or it cannot find the login.
  const refusal = await probe(endpoint, { headers: { Origin: origin }, method: 'POST' });
  return describeLack(refusal.headers, 'Access-Control-Expose-Headers', READ_HEADERS);
}

function describeLack(headers: FetchResponse['headers'], name: string, needed: readonly string[]) {
  const listed =
    headers
      .get(name)
      ?.toLowerCase()
      .split(/\s*,\s*/) ?? [];
  const missing = needed.filter((one) => !listed.includes(one.toLowerCase()));
  return missing.length === 0 ? undefined : `${name} lacks ${missing.join(', ')}`;
}
