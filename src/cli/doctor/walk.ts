// A gateway as a client sees it that has only the URL.

import { setTimeout as pause } from 'node:timers/promises';
import { isOnThisMachine } from '../../platform/address.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Advice } from './finding.ts';
import { type Instruments, type ProbeAnswer, readHeaderWords } from './instruments.ts';
import { LOOPBACK_REDIRECT_URI, type LoginClient, logInAsClient, register } from './login.ts';

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
    const [issuer] = readTexts((await readResourceMetadata())?.authorization_servers);
    const urls = listMetadataUrls(issuer ?? baseUrl);
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
    const [authorizationUrl, client] = await Promise.all([
      readEndpoint('authorization_endpoint'),
      findClient(),
    ]);
    if (authorizationUrl === undefined || client === undefined) return undefined;
    const mayHaveReplicas = !isOnThisMachine(new URL(baseUrl).hostname);
    return logInAsClient({
      authorizationUrl,
      ...client,
      resource: endpoint,
      mayHaveReplicas,
      probe,
    });
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

const readTexts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one: unknown) => typeof one === 'string') : [];

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

/** RFC 8414 §3.1 and §5, in the order of the MCP specification: the issuer's path is put behind the well-known one, then before it. */
function listMetadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ];
}

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

// Answers of a gateway: its errors (§7.1), and which limit refused a request (§8).

/** The end of a limit's variable, behind the group's prefix, by the `reason` of the refusal (§7.2). */
const VARIABLES: ReadonlyMap<string | undefined, string> = new Map([
  ['rate_limit_exceeded', 'RATE_LIMIT_MAX'],
  ['user_rate_limit_exceeded', 'USER_RATE_LIMIT_MAX'],
  ['global_rate_limit_exceeded', 'GLOBAL_RATE_LIMIT_MAX'],
  ['too_many_calls', 'USER_CALLS_MAX'],
]);

/** Advice about a 429. `prefix` is that of the variables of the endpoint's limits, such as `DCR`. */
export function adviseOnLimit(answer: ProbeAnswer, prefix: string): Advice {
  // §7.3: the token endpoint does not say which of its limits it was; for doctor it is that of the address.
  const isOAuthError = answer.json?.error === 'temporarily_unavailable';
  const variable = VARIABLES.get(isOAuthError ? 'rate_limit_exceeded' : readReason(answer));
  const wait = `try again ${describeWait(answer)}`;
  if (variable === undefined)
    return { remedy: `${wait}. It seems that a proxy in front refused, and not the gateway.` };
  return {
    setting: `${prefix}_${variable}`,
    remedy: `${wait}, or raise this limit on the gateway.`,
  };
}

/** RFC 9110 §10.2.3, in seconds as the gateway writes it. */
function describeWait({ headers }: ProbeAnswer): string {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  if (!Number.isFinite(seconds)) return 'later';
  if (seconds <= 90) return seconds === 1 ? 'in 1 second' : `in ${seconds} seconds`;
  return `in ${Math.ceil(seconds / 60)} minutes`;
}

/** `data` of a JSON-RPC error; empty where there is none. */
export function readErrorData({ json }: ProbeAnswer): Readonly<Record<string, unknown>> {
  const error = json?.error;
  return isObject(error) && isObject(error.data) ? error.data : {};
}

/** The word by which programs tell refusals apart. */
export function readReason(answer: ProbeAnswer): string | undefined {
  const { reason } = readErrorData(answer);
  return typeof reason === 'string' ? reason : undefined;
}

/** RFC 6749 §5.2, or what else the body says. */
export function readError({ status, json, text }: ProbeAnswer): string {
  const { error, error_description: description } = json ?? {};
  const words = [error, description].filter((one) => typeof one === 'string').join(': ');
  const said = words === '' ? readHeaderWords(text) : words;
  return `${status} ${said.slice(0, 300)}`.trim();
}

/** A request as a client sends it: JSON-RPC by HTTP. */
export const createCall = (
  method: string,
  params: JsonObject = {},
  headers: Readonly<Record<string, string>> = {},
) => ({
  method: 'POST' as const,
  headers: {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...headers,
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
});

/** The first call of a client that has no token yet. */
export const MCP_CALL = createCall('tools/list');
