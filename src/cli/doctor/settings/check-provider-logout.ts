// §13.4, §13.5: whether the provider tells the gateway that somebody logged out there, and whether users can log out there.

import type { Config } from '../../../config/config.ts';
import type { ProviderDocument } from '../../../http/oauth-client/provider-metadata.ts';
import { type Finding, type Found, ok } from '../finding.ts';
import { isDiscovered } from './check-discovery.ts';
import { findBrokerConfig } from './check-own-tokens.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

/** What the discovery document says of it. Whether an address is registered, only the provider knows. */
export async function checkProviderLogout({ access, config }: SettingsAtHand): Promise<Found> {
  const oauth = findBrokerConfig(config);
  if (oauth === undefined || access === undefined || !(await isDiscovered(access))) return [];
  const document = await access.metadata.get().catch(() => undefined);
  if (document === undefined) return [];
  return [
    judgeBackchannel(document, config.server, oauth.tokens.backchannelEnds),
    judgeEndSession(document, config.server),
  ];
}

const BACKCHANNEL_CHECK = 'provider.backchannel-logout';

function judgeBackchannel(
  document: ProviderDocument,
  { baseUrl }: Config['server'],
  ends: 'session' | 'all',
): Finding {
  if (document.backchannel_logout_supported !== true) {
    return ok(
      BACKCHANNEL_CHECK,
      'The provider does not say that it can tell the gateway of logouts there (backchannel_logout_supported). Who logs out there stays logged in here, unless the provider then refuses the next renewal.',
    );
  }
  const namesSessions = document.backchannel_logout_session_supported === true;
  const what =
    ends === 'session' && namesSessions
      ? "those logins of the user end that came from that session; with OAUTH_BACKCHANNEL_ENDS=all, all of the user's"
      : 'all logins of the user end';
  const unnamed = namesSessions
    ? ''
    : ' It does not say that it names sessions (backchannel_logout_session_supported).';
  return ok(BACKCHANNEL_CHECK, {
    what: `The provider can tell the gateway of logouts there. Register ${baseUrl}/oauth/backchannel-logout as back-channel logout URL of the gateway's client.${unnamed}`,
    why: `Once somebody logs out there, ${what}.`,
  });
}

const END_SESSION_CHECK = 'provider.end-session';

const judgeEndSession = (
  { end_session_endpoint: url }: ProviderDocument,
  { baseUrl }: Config['server'],
): Finding =>
  ok(
    END_SESSION_CHECK,
    url === undefined
      ? 'The provider has no page on which browsers log out (end_session_endpoint): /account logs out here alone.'
      : `Users who log out at /account can log out at ${new URL(url).host}, too. Register ${baseUrl}/account as post-logout redirect URI of the gateway's client, so that they come back.`,
  );
