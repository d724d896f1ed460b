// §13.3: who may log in at all, of those whom the provider knows.
import { type IdentityConfig, loginPolicySettings } from '../../../config/groups/own-tokens.ts';
import { shorten } from '../../../platform/text.ts';
import { type Found, ok } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'login-policy';

/** In proxy mode there is no choice. */
export async function checkLoginPolicy({ config: { oauth } }: SettingsAtHand): Promise<Found> {
  if (oauth.mode !== 'broker') return [];
  const lists = describeLists(oauth.identity);
  return ok(
    CHECK,
    lists.length === 0
      ? 'Everybody whom the provider lets in may log in: no LOGIN_ALLOWED setting says who may.'
      : `Of those whom the provider lets in, only these may log in: ${lists.join(' and ')}.`,
  );
}

/** Those that are set: all of them have to hold. */
const describeLists = ({
  allowedEmails,
  allowedGroups,
  allowedClaims,
}: IdentityConfig): readonly string[] =>
  [
    { setting: loginPolicySettings.allowedEmails, values: allowedEmails },
    { setting: loginPolicySettings.allowedGroups, values: allowedGroups },
    {
      setting: loginPolicySettings.allowedClaims,
      values: allowedClaims.map((pair) => pair.join('=')),
    },
  ]
    .filter(({ values }) => values.length > 0)
    .map(({ setting, values }) => `${setting.variable}=${shorten(values.join(','), MAX_LIST)}`);

/** Characters. */
const MAX_LIST = 200;
