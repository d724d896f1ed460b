// §27.6: rules that ask before a call runs: how many, and whom they cannot reach.

import { hasApprovalsPage } from '../../../control/approvals/approvals.ts';
import { countNoun } from '../../../platform/text.ts';
import { type Found, ok, warning } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'approvals';

/** Nothing where no rule asks. That nobody could decide at all keeps the gateway from starting. */
export async function checkApprovals({ config, setup }: SettingsAtHand): Promise<Found> {
  const asking = (setup?.file.rules ?? []).filter(({ ask }) => ask !== undefined);
  if (asking.length === 0) return undefined;
  const asksUsers = asking.some(({ ask }) => ask === 'user');
  const told = ok(
    CHECK,
    `${countNoun(asking.length, 'rule')} ${asking.length === 1 ? 'asks' : 'ask'} before a call runs.`,
  );
  if (!asksUsers || hasApprovalsPage(config)) return [told];
  return [
    told,
    warning(CHECK, {
      what: 'Clients that cannot ask their user (without elicitation) can make none of the calls that "ask": "user" is about: this gateway has no page where users could decide.',
      remedy: 'set OAUTH_MODE=broker.',
    }),
  ];
}
