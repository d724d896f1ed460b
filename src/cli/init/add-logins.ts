// Which of the servers taken over want each user to log in at them: they say so to whoever comes without a token.
import { hasVariable } from '../../config/file/expand.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { ADDRESS_MEMBERS } from '../../servers/config/plain-secrets.ts';
import type { ImportedServers } from './import-servers.ts';

/** Of each server, all at the same time: somebody waits. */
const LIMITS = { timeoutMs: 5000, maxBytes: 65_536, acceptsRedirects: true };

/** Adds `"auth": {"type": "oauth"}` to those. What does not answer stays as it is: the gateway says at its start what it lacks. */
export async function addLogins(imported: ImportedServers, fetch: Fetch): Promise<ImportedServers> {
  const entries = Object.entries(imported.servers);
  const wanting = new Set<string>();
  await Promise.all(
    entries.map(async ([name, server]) => {
      if (isObject(server) && (await wantsLogin(server, fetch))) wanting.add(name);
    }),
  );
  const added = [...wanting].sort().map((server) => ({ server, member: 'auth', what: ADDED }));
  return {
    ...imported,
    servers: Object.fromEntries(
      entries.map(([name, server]) => [
        name,
        isObject(server) && wanting.has(name) ? { ...server, auth: { type: 'oauth' } } : server,
      ]),
    ),
    changes: [...imported.changes, ...added],
  };
}

const ADDED =
  'added, with the type oauth: it wants each user to log in. Users connect when they first call it';

async function wantsLogin(server: JsonObject, fetch: Fetch): Promise<boolean> {
  const url = ADDRESS_MEMBERS.map((name) => server[name]).find((text) => typeof text === 'string');
  if (url === undefined || !isAskable(url) || server.disabled === true || hasCredentials(server))
    return false;
  try {
    const request = server.type === 'sse' ? STREAM : INITIALIZE;
    const { status, headers } = await fetchWithLimits(fetch, url, request, LIMITS);
    return status === 401 && /\bresource_metadata=/i.test(headers.get('www-authenticate') ?? '');
  } catch {
    return false;
  }
}

/** Nobody is sent what the environment has, or a password. */
function isAskable(url: string): boolean {
  if (hasVariable(url) || !URL.canParse(url)) return false;
  const { protocol, username, password } = new URL(url);
  return /^https?:$/.test(protocol) && username + password === '';
}

/** Any header may be a key that lets it in: such a server wants no other login. */
const hasCredentials = ({ auth, headers }: JsonObject): boolean =>
  auth !== undefined || (isObject(headers) && Object.keys(headers).length > 0);

const STREAM = { headers: { Accept: 'text/event-stream' } };

const INITIALIZE = {
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'postern init', version: '1' },
    },
  }),
};
