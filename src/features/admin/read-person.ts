// §22.4: the person whose tools an operator asks about, as a token would name them.
import { fail } from '../../core/errors/gateway-error.ts';
import { readEmail } from '../../core/user-context.ts';
import type { RuleCaller } from '../rules/rules.ts';

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
