// A gateway as a client sees it that has only the URL.

import { setTimeout as pause } from 'node:timers/promises';
import { isOnThisMachine } from '../../platform/address.ts';
import { isObject } from '../../platform/json.ts';
import type { Instruments, ProbeAnswer } from './instruments.ts';
import {
  LOOPBACK_REDIRECT_URI,
  type LoginClient,
  logInAsClient,
  MCP_CALL,
  readErrorData,
  register,
} from './log-in.ts';

/** Each part is asked for once, by whichever check needs it first. What cannot be asked throws a FetchError. */
export type Walk = ReturnType<typeof createWalk>;

/**
 * `baseUrl` has no slash at its end, and no `/mcp`. `refusesEditors`: the settings, where they are at hand, let no editor
 * register with a scheme of its own.
 */
export function createWalk(baseUrl: string, instruments: Instruments, refusesEditors = false) {
  const { probe } = instruments;
  const endpoint = `${baseUrl}/mcp`;

  const callWithoutToken = memoize(() => probe(endpoint, MCP_CALL));

  /** True where clients get tokens of the gateway's own (§5.11): told by what it says of one that nobody issued. */
  const issuesOwnTokens = memoize(async () => {
    const headers = { ...MCP_CALL.headers, Authorization: 'Bearer pst_postern-doctor' };
    const { details } = readErrorData(await probe(endpoint, { ...MCP_CALL, headers }));
    return typeof details === 'string' && /another gateway issued it/.test(details);
  });

  /** One that has just started still fetches the provider's keys: it is asked again for a second. */
  const readReadiness = memoize(async () => {
    let answer = await probe(`${baseUrl}/health/ready`);
    for (let again = 0; answer.status === 503 && again < 5; again += 1) {
      await pause(200);
      answer = await probe(`${baseUrl}/health/ready`);
    }
    return answer;
  });

  /** Dependencies that the gateway says it lacks (§4.3): `keySet`, `store`, `servers`. */
  const listLacking = async () => {
    const { checks } = (await readReadiness()).json ?? {};
    const entries = isObject(checks) ? Object.entries(checks) : [];
    return entries.flatMap(([name, check]) =>
      isObject(check) && check.status !== 'ok' ? [name] : [],
    );
  };

  /** RFC 9728 §5.1: where the challenge leads; undefined without one. */
  const findChallenge = memoize(async () => {
    const header = (await callWithoutToken()).headers.get('www-authenticate') ?? '';
    return /resource_metadata="([^"]+)"/.exec(header)?.[1];
  });

  /** The place to which the challenge leads, or else where clients look by themselves (§3.1); undefined where there is nothing. */
  const findResourceMetadata = memoize(async () => {
    const url = await findChallenge();
    if (url !== undefined || (await callWithoutToken()).status !== 401) return url;
    const answers = await Promise.all(listResourceMetadataUrls(endpoint).map((one) => probe(one)));
    return answers.find(({ status, json }) => status === 200 && json !== undefined)?.url;
  });

  /** RFC 9728; undefined where it cannot be read. */
  const readResourceMetadata = memoize(async () => {
    const url = await findResourceMetadata();
    return url === undefined || !URL.canParse(url) ? undefined : (await probe(url)).json;
  });

  /** RFC 8414: all places where clients look for it, in the order in which they look. */
  const readServerMetadata = memoize(async () => {
    const servers = (await readResourceMetadata())?.authorization_servers;
    const issuer = Array.isArray(servers)
      ? servers.find((one: unknown) => typeof one === 'string')
      : undefined;
    const { origin, pathname } = new URL(issuer ?? baseUrl);
    const path = pathname.replace(/\/$/, '');
    // §3.1 and §5, in the order of the MCP specification: the issuer's path is put behind the well-known one, then before it.
    const urls = [
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
    ];
    return (await Promise.all(urls.map((url) => probe(url)))).map(toMetadata);
  });

  /** The first of them that is there. */
  const readServerDocument = async () =>
    (await readServerMetadata()).find(({ document }) => document !== undefined)?.document;

  const readEndpoint = async (name: string): Promise<string | undefined> => {
    const url = (await readServerDocument())?.[name];
    return typeof url === 'string' && URL.canParse(url) ? url : undefined;
  };

  /** Undefined where there is no endpoint to register at. */
  const registerOnce = memoize(async () => {
    const url = await readEndpoint('registration_endpoint');
    return url === undefined ? undefined : register(url, probe, refusesEditors);
  });

  /** The client of its own registration, or else the one that every gateway has. */
  const findClient = memoize(async (): Promise<LoginClient | undefined> => {
    const registration = await registerOnce();
    if (registration?.kind === 'registered')
      return { clientId: registration.clientId, redirectUri: LOOPBACK_REDIRECT_URI };
    const { login } = (await probe(`${baseUrl}/site.json`)).json ?? {};
    const { clientId, redirectUri } = isObject(login) ? login : {};
    return typeof clientId === 'string' && typeof redirectUri === 'string'
      ? { clientId, redirectUri }
      : undefined;
  });

  const logInOnce = memoize(async () => {
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
    register: registerOnce,
    findClient,
    logIn: logInOnce,
  };
}

/** RFC 9728 §3.1, with the path of the resource and without. */
export function listResourceMetadataUrls(endpoint: string): readonly string[] {
  const { origin, pathname } = new URL(endpoint);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  return [`${wellKnown}${pathname}`, wellKnown];
}

/** Runs `load` at the first call; all get its outcome. */
function memoize<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loading: Promise<Value> | undefined;
  return () => {
    loading ??= load();
    return loading;
  };
}

/** The document of one of the places, where clients differ in which of them they try. */
export type MetadataAtPath = ReturnType<typeof toMetadata>;

/** `said`: what the answer says where it is an error. */
function toMetadata({ url, status, json }: ProbeAnswer) {
  const said = json?.error_description;
  return {
    url,
    status,
    document: status === 200 ? json : undefined,
    said: typeof said === 'string' ? said : undefined,
  };
}
