// §22.4: the person whose tools an operator asks about, as a token would name them.

import { readEmail } from '../../endpoint/user-context.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { RuleCaller } from '../../policy/rules/rules.ts';

/** @throws GatewayError `bad_request` where nobody is named. */
export function readPerson(query: URLSearchParams): RuleCaller {
  const sub = query.get('user') ?? '';
  const email = query.get('email') ?? '';
  const groups = query.getAll('group').filter((group) => group !== '');
  if (sub === '' && email === '' && groups.length === 0) {
    fail('bad_request', { details: 'Say who it is: user, email or group.' });
  }
  const claims = {
    ...(sub !== '' && { sub }),
    ...(email !== '' && { email }),
    ...(groups.length > 0 && { groups }),
  };
  const user = {
    sub,
    claims,
    token: '',
    ...readEmail(claims),
    ...(groups.length > 0 && { groups }),
  };
  return { user, clientId: query.get('client') || undefined };
}
