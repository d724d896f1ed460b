// §24.6: servers at which each user logs in: whether the gateway can be a client there, and what is missing.

import { describeCause } from '../../../platform/log.ts';
import type { readConnectionServer } from '../../../servers/transport/transports.ts';
import { type FoundLogin, findLogins } from '../../setup/find-login.ts';
import { type Finding, failure, ok, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

/** As the room of connections has it. */
type LoginServer = NonNullable<ReturnType<typeof readConnectionServer>>;

const CHECK = 'server.login';
const SETTING = 'POSTERN_CONFIG';

export async function checkLogins(
  servers: readonly LoginServer[],
  { config, clocks, tunnel, clock }: Pick<SettingsAtHand, 'config' | 'clocks' | 'tunnel' | 'clock'>,
): Promise<readonly Finding[]> {
  const found = await findLogins(servers, { config, fetch: clocks.fetch, tunnel, clock });
  return found.flatMap(({ server, login }) =>
    login.kind === 'problem'
      ? [tellProblem(server, login)]
      : [tellClient(server, login), ...tellPkce(server, login)],
  );
}

type Found = Extract<FoundLogin, { readonly kind: 'found' }>;

function tellProblem(
  { name }: LoginServer,
  problem: Extract<FoundLogin, { readonly kind: 'problem' }>,
): Finding {
  const { message, cause } = problem;
  return failure(CHECK, {
    what: `Users cannot connect to ${message}`,
    ...(cause !== undefined && { why: describeCause(cause) }),
    setting: SETTING,
    remedy: advise(name, problem),
  });
}

function advise(
  name: string,
  { isPrivate, isUnreachable, isForeign }: Extract<FoundLogin, { readonly kind: 'problem' }>,
): string {
  if (isForeign) return 'ask its operator why, before anything else.';
  if (isPrivate)
    return `if the login of ${name} is inside your network, add "allowPrivate": true to its "auth".`;
  return isUnreachable
    ? `see whether it is up, whether ${name} has the right "url" (and "authorizationServer", if it names one), and whether a firewall or a proxy is in between (HTTPS_PROXY).`
    : `once that is mended, run this again. Where the server documents its endpoints, "authorizationServer" can name them.`;
}

const BECOMES_KNOWN = {
  configured: 'The gateway is the client of "clientId" there; whether it is known was not tried',
  document: 'The gateway is known there by its client document',
  registered: 'The gateway registers itself there when the first user connects',
} as const;

function tellClient(
  { name }: LoginServer,
  { at: { issuer }, client, isAmbiguous, redirectUri: uri }: Found,
): Finding {
  if (isAmbiguous) {
    return failure(CHECK, {
      what: `Users cannot connect to ${name}: its client has the redirect URI of all servers, and ${issuer} does not promise to say in its responses who it is (RFC 9207).`,
      setting: SETTING,
      remedy: `add the redirect URI ${uri} to the client there, and remove "redirectUri" from the "auth" of ${name}.`,
    });
  }
  if (client !== 'nobody') {
    const needed = client === 'configured' ? `. Its redirect URI there must be ${uri}` : '';
    return ok(CHECK, `Users of ${name} log in at ${issuer}. ${BECOMES_KNOWN[client]}${needed}.`);
  }
  return failure(CHECK, {
    what: `Users cannot connect to ${name}: ${issuer} lets no client register itself.`,
    setting: SETTING,
    remedy: `create a client there with the redirect URI ${uri}, and set its "clientId" (and "clientSecret") in the "auth" of ${name}.`,
  });
}

function* tellPkce({ name, auth }: LoginServer, { at: { issuer }, takesS256 }: Found) {
  if (takesS256 === true || !auth.pkce) return;
  // Where the operator named the endpoints, there is no metadata that could say it.
  const hasNoMetadata =
    auth.authorizationServer !== undefined && 'tokenUrl' in auth.authorizationServer;
  if (hasNoMetadata) return;
  const hasSecret = auth.clientSecret !== undefined;
  if (takesS256 === undefined) {
    yield warning(CHECK, {
      what: `${issuer}, where users of ${name} log in, does not say whether it takes PKCE with S256.`,
      why: 'The gateway sends it all the same, and most take it.',
    });
    return;
  }
  yield failure(CHECK, {
    what: `${issuer}, where users of ${name} log in, takes no PKCE with S256.`,
    setting: SETTING,
    remedy: hasSecret
      ? `add "pkce": false to the "auth" of ${name}: its client secret protects the code.`
      : `create a client with a secret there, and set "clientId", "clientSecret" and "pkce": false in the "auth" of ${name}.`,
  });
}
