// §24.6: checks servers that require a login per user: whether the gateway can be a client there, and what is missing.

import { createFindLoginPlace } from '../../connections/servers/authorization-server.ts';
import {
  buildOwnRedirectUri,
  buildRedirectUri,
  findDocumentUrl,
  isRedirectAmbiguous,
} from '../../connections/servers/client-document.ts';
import { chooseClientSource } from '../../connections/servers/clients.ts';
import {
  describeConfigured,
  describeFound,
  describeProvider,
  findForeignEndpoints,
} from '../../connections/servers/known-issuers.ts';
import { createOutbound, NoAnswer } from '../../connections/servers/outbound.ts';
import { ConnectionProblem, type ConnectionServer } from '../../mcp/upstream/connections.ts';
import { describeCause } from '../../platform/log.ts';
import { createPublicNetwork, HostNotPublic } from '../../platform/outbound/public-network.ts';
import { failure, ok, type Row, unknown, warning } from './finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'server.login';
const LOGIN_SETTING = 'POSTERN_CONFIG';

export async function checkLogins(
  servers: readonly ConnectionServer[],
  settings: SettingsAtHand,
): Promise<readonly Row[]> {
  const { oauth } = settings.config;
  const document = await settings.access?.metadata.get().catch(() => undefined);
  const provider = oauth.mode === 'broker' ? [describeProvider(oauth, document)] : [];
  const found = await Promise.all(
    servers.map(async (server) => ({ server, login: await findLogin(server, settings) })),
  );
  // Issuers from the file and the servers only. A running gateway may know more, from its store.
  const listIssuers = ({ server, login }: (typeof found)[number]) => {
    const configured = describeConfigured(server.auth.authorizationServer);
    if (login.kind === 'problem') return configured === undefined ? [] : [configured];
    if (configured !== undefined) return [describeFound(login.at)];
    const { issuer } = login.at;
    return [{ issuer, origins: [new URL(issuer).origin] }];
  };
  return found.flatMap(({ server, login }) => {
    if (login.kind === 'problem')
      return failure(CHECK, `Users cannot connect to ${login.message}`, {
        why: login.cause === undefined ? undefined : describeCause(login.cause),
        setting: LOGIN_SETTING,
        remedy: adviseOnLogin(server.name, login),
      });
    const others = found.filter((one) => one.server !== server).flatMap(listIssuers);
    const foreign = findForeignEndpoints(server, login.at, [...provider, ...others]);
    return foreign === undefined
      ? [tellClient(server, login), tellPkce(server, login)].flat()
      : failure(CHECK, `Users cannot connect to ${foreign.message}`, {
          setting: LOGIN_SETTING,
          remedy: 'ask its operator for the reason first.',
        });
  });
}

type FoundPlace = Extract<FoundLogin, { readonly kind: 'found' }>;

function adviseOnLogin(
  name: string,
  { isPrivate, isUnreachable }: Extract<FoundLogin, { readonly kind: 'problem' }>,
) {
  if (isPrivate)
    return `if the login of ${name} is inside your network, add "allowPrivate": true to its "auth".`;
  return isUnreachable
    ? `check that it is up, that ${name} has the right "url" (and "authorizationServer", if it names one), and that no firewall or proxy blocks it (HTTPS_PROXY).`
    : 'once that is fixed, run this again. If the server documents its endpoints, "authorizationServer" can name them.';
}

const BECOMES_KNOWN = {
  configured: 'The gateway is the client of "clientId" there',
  document: 'The gateway is known there by its client document',
  registered: 'The gateway registers itself there when the first user connects',
} as const;

function tellClient(
  { name }: ConnectionServer,
  { at: { issuer }, client, isAmbiguous, redirectUri: uri }: FoundPlace,
) {
  if (isAmbiguous) {
    return failure(
      CHECK,
      `Users cannot connect to ${name}: its client has the redirect URI of all servers, and ${issuer} does not promise to say in its responses who it is (RFC 9207).`,
      {
        setting: LOGIN_SETTING,
        remedy: `add the redirect URI ${uri} to the client there, and remove "redirectUri" from the "auth" of ${name}.`,
      },
    );
  }
  if (client !== 'nobody') {
    return [
      ok(CHECK, `Users of ${name} log in at ${issuer}. ${BECOMES_KNOWN[client]}.`),
      client === 'configured' &&
        unknown(
          CHECK,
          `whether ${issuer} knows the client of "clientId" of ${name}, which was not tried. Its redirect URI there must be ${uri}.`,
        ),
    ];
  }
  return failure(
    CHECK,
    `Users cannot connect to ${name}: ${issuer} lets no client register itself.`,
    {
      setting: LOGIN_SETTING,
      remedy: `create a client there with the redirect URI ${uri}, and set its "clientId" (and "clientSecret") in the "auth" of ${name}.`,
    },
  );
}

function tellPkce({ name, auth }: ConnectionServer, { at: { issuer }, takesS256 }: FoundPlace) {
  if (takesS256 === true || !auth.pkce) return undefined;
  // If the operator named the endpoints, there is no metadata to read.
  const hasNoMetadata =
    auth.authorizationServer !== undefined && 'tokenUrl' in auth.authorizationServer;
  if (hasNoMetadata) return undefined;
  if (takesS256 === undefined)
    return warning(
      CHECK,
      `${issuer}, where users of ${name} log in, does not say whether it supports PKCE with S256.`,
      {
        why: 'The gateway sends it anyway, and most servers accept it.',
      },
    );
  return failure(
    CHECK,
    `${issuer}, where users of ${name} log in, does not support PKCE with S256.`,
    {
      setting: LOGIN_SETTING,
      remedy:
        auth.clientSecret !== undefined
          ? `add "pkce": false to the "auth" of ${name}: its client secret protects the code.`
          : `create a client with a secret there, and set "clientId", "clientSecret" and "pkce": false in the "auth" of ${name}.`,
    },
  );
}

// §24.6: how users would log in to a server, determined as the gateway does when a user connects. Nothing is registered.

type FoundLogin = Awaited<ReturnType<typeof findLogin>>;

async function findLogin(
  server: ConnectionServer,
  { config, clocks, tunnel, clock }: SettingsAtHand,
) {
  const outbound = createOutbound(
    { fetch: clocks.fetch, clock },
    createPublicNetwork({ clock, tunnel }),
  );
  try {
    const { authorizationServer } = await createFindLoginPlace(outbound, clock)(server);
    const { challengeMethods } = authorizationServer;
    const { baseUrl } = config.server;
    const hasDocument = findDocumentUrl(baseUrl) !== undefined;
    const isAmbiguous = isRedirectAmbiguous(server, authorizationServer);
    return {
      kind: 'found' as const,
      at: authorizationServer,
      /** The source of the gateway's client there; `nobody` if it has no client, and cannot register. */
      client:
        chooseClientSource(server.auth, authorizationServer, hasDocument) ?? ('nobody' as const),
      /** True if several servers share the redirect URI there, and `iss` is not guaranteed. */
      isAmbiguous,
      /** The redirect URI it needs there; the server's own if the shared one is ambiguous. */
      redirectUri: (isAmbiguous ? buildOwnRedirectUri : buildRedirectUri)(baseUrl, server),
      /** True if PKCE with S256 is supported; undefined if unknown. */
      takesS256: challengeMethods?.includes('S256'),
    };
  } catch (problem) {
    if (!(problem instanceof ConnectionProblem)) throw problem;
    const { message, cause } = problem;
    return {
      kind: 'problem' as const,
      /** A sentence without secrets. */
      message,
      /** An address from the server is not public. */
      isPrivate: isFromPrivateHost(problem),
      /** No response from an address named by the server or its operator. */
      isUnreachable: cause instanceof NoAnswer,
      cause,
    };
  }
}

function isFromPrivateHost(error: unknown) {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof HostNotPublic) return true;
  }
  return false;
}
