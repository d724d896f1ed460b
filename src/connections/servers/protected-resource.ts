// §24, RFC 9728: what a server says of itself: whose tokens it takes, for which resource and scopes.

import { cleanScopes } from '../../http/oauth-client/token-answer.ts';
import { ConnectionProblem, type ConnectionServer } from '../../mcp/upstream/connections.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { createNoAnswerProblem, findUrlProblem, type Outbound } from './outbound.ts';

/** Undefined where the server has no such metadata; `issuers` is never empty. @throws ConnectionProblem for one that cannot be used. */
export async function findProtectedResource(server: ConnectionServer, outbound: Outbound) {
  const challenge = readBearerChallenge(await outbound.readChallenge(server));
  const { origin, pathname } = new URL(server.url);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const candidates = [
    ...(challenge.metadata === undefined ? [] : [challenge.metadata]),
    // RFC 9728 §3.1: between host and path; and at the root, where many have the one of the whole host.
    wellKnown + pathname.replace(/\/+$/, ''),
    wellKnown,
  ];
  for (const url of new Set(candidates)) {
    const found = await fetchResource(url, server, outbound, url === challenge.metadata);
    // Scopes of either are what the server asks for (MCP, "Scope Selection Strategy").
    if (found !== undefined) return { ...found, scopes: challenge.scopes ?? found.scopes };
  }
  return undefined;
}

/** RFC 9728 §5.1, RFC 6750 §3: what a `WWW-Authenticate` says to whoever has no good token. */
export function readBearerChallenge(header: string | undefined) {
  const read = (name: string): string | undefined => {
    const pattern = new RegExp(
      `(?:^|[\\s,])${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`,
      'i',
    );
    const [, quoted, bare] = pattern.exec(header?.slice(0, MAX_CHALLENGE) ?? '') ?? [];
    return quoted?.replace(/\\(.)/g, '$1') ?? bare;
  };
  const scopes = cleanScopes(read('scope')?.split(' ') ?? []);
  return {
    metadata: read('resource_metadata'),
    error: read('error'),
    scopes: scopes.length === 0 ? undefined : scopes,
  };
}

const MAX_CHALLENGE = 4096;

async function fetchResource(
  url: string,
  server: ConnectionServer,
  outbound: Outbound,
  isNamed: boolean,
) {
  const hop = `${server.name}: its protected resource metadata`;
  const isOwn = URL.canParse(url) && new URL(url).origin === new URL(server.url).origin;
  // At its own origin a server is reached as the operator wrote it.
  const problem = isOwn ? undefined : findUrlProblem(url, server);
  if (problem !== undefined) throw new ConnectionProblem('server', `${hop} is at ${problem}.`);
  const answer = await outbound
    .send(url, {}, server)
    .catch(createNoAnswerProblem(`${hop} could not be fetched`));
  if (answer.status !== 200) {
    if (!isNamed) return undefined;
    throw new ConnectionProblem(
      'server',
      `${hop}, which its 401 names, answered ${answer.status}.`,
    );
  }
  const members = parseObject(answer.body);
  // Pages that answer everything with 200 are no metadata.
  if (members === undefined && !isNamed) return undefined;
  const { resource, authorization_servers: issuers, scopes_supported: scopes } = members ?? {};
  if (typeof resource !== 'string' || !isSameResource(resource, server.url)) {
    throw new ConnectionProblem(
      'server',
      `${hop} is about ${quote(resource, 200)}, which is not this server (${server.url}): tokens for it might be another's. Its operator has to mend that, or set "authorizationServer" and "resource".`,
    );
  }
  if (!isStringArray(issuers) || issuers.length === 0) {
    throw new ConnectionProblem(
      'server',
      `${hop} names no authorization server. Set "authorizationServer".`,
    );
  }
  return { resource, issuers, scopes: isStringArray(scopes) ? cleanScopes(scopes) : undefined };
}

/**
 * RFC 9728 §3.3. Many name their host, or the part of it that the server's path lies in, in place of the address itself: that
 * is within the same origin, and the same operator's.
 */
function isSameResource(resource: string, serverUrl: string): boolean {
  if (!URL.canParse(resource)) return false;
  const [named, own] = [new URL(resource), new URL(serverUrl)];
  const path = named.pathname.replace(/\/+$/, '');
  const isWithin = own.pathname === path || own.pathname.startsWith(`${path}/`);
  return named.origin === own.origin && (isWithin || own.pathname === named.pathname);
}
