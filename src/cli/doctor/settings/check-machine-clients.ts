// §13.6: the clients of the configuration file that log in as themselves: how many, and whether their keys can be fetched.

import { parseKeySet } from '../../../logins/auth/jwk.ts';
import type { MachineClient } from '../../../logins/auth/machine-clients.ts';
import { type Fetch, fetchWithLimits } from '../../../platform/fetch-with-limits.ts';
import { describeCause } from '../../../platform/log.ts';
import { stripUri } from '../../../platform/secret-texts.ts';
import { countNoun } from '../../../platform/text.ts';
import { type Finding, type Found, failure, ok } from '../finding.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'machine-clients';
const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** Nothing without any. */
export async function checkMachineClients({
  setup,
  clocks: { fetch },
}: SettingsAtHand): Promise<Found> {
  const clients = setup?.file.clients ?? [];
  if (clients.length === 0) return undefined;
  const ids = clients.map(({ id }) => id).join(', ');
  const withKeys = clients.filter(({ credentials }) => credentials.kind === 'keysUrl');
  return [
    ok(CHECK, `${countNoun(clients.length, 'client')} can log in as themselves: ${ids}.`),
    ...(await Promise.all(withKeys.map((client) => checkKeys(client, fetch)))),
  ];
}

async function checkKeys({ id, credentials }: MachineClient, fetch: Fetch): Promise<Finding> {
  const url = credentials.kind === 'keysUrl' ? credentials.url : '';
  try {
    const { status, body } = await fetchWithLimits(fetch, url, {}, LIMITS);
    if (status !== 200) throw new Error(`it answered ${status}`);
    const { usable } = parseKeySet(body);
    return ok(
      CHECK,
      `The keys of client ${id} can be fetched (${countNoun(usable.length, 'key')}).`,
    );
  } catch (error) {
    return failure(CHECK, {
      what: `The keys of client ${id} cannot be fetched from ${stripUri(url)}, so it cannot log in.`,
      why: describeCause(error),
      remedy: 'correct its "jwksUri" in the configuration file, or let the gateway reach it.',
    });
  }
}
